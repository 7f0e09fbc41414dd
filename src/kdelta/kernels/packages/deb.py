# SPDX-License-Identifier: GPL-2.0-or-later
"""deb:PACKAGE[:ARCH][=VERSION][@SUITE] -> kernel: downloaded by apt, unpacked without root, and
kept in the cache.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from kdelta.host.command import Log
from kdelta.host.files import remove, write_json
from kdelta.host.lock import locked
from kdelta.host.manifest import published_folder
from kdelta.host.target import targets
from kdelta.kernels.model import Kernel
from kdelta.kernels.packages.apt import host_suite
from kdelta.kernels.packages.cached import (
    RECORD,
    CachedKernel,
    cached_kernels,
    kernel_folder,
    load_cached,
    record_of,
)
from kdelta.kernels.packages.packages import Shelf
from kdelta.kernels.packages.unpack import unpack_kernel
from kdelta.spec.errors import UserError
from kdelta.spec.kernel import DebSpec

_PARTS = ("linux-base-", "linux-binary-", "linux-modules-")


def obtain_deb(spec: DebSpec, log: Log) -> Kernel:
    """The kernel of a package. A package that only depends on the current kernel is followed to it.

    UserError for a package or version that does not exist or holds no kernel for the lab; LabError
    when it has to be downloaded and cannot be.
    """
    return _kernels(spec, log).obtain(spec.package, spec.version).kernel()


def check_deb(spec: DebSpec, log: Log) -> None:
    """UserError for a package or version that does not exist, before any is downloaded."""
    _kernels(spec, log).check(spec.package, spec.version)


def _kernels(spec: DebSpec, log: Log) -> "_Kernels":
    if spec.package.endswith(("-dbg", "-dbgsym")):
        raise UserError(
            f"{spec.package} holds debug information, no kernel",
            f"write deb:{spec.package.rpartition('-')[0]}",
        )
    architecture = spec.architecture
    if architecture is not None:
        of = next((one for one in targets().values() if one.dpkg == architecture), None)
        if of is None:
            raise UserError(
                f"kernels for {architecture} cannot be run: there is no machine for it",
                f"there are machines for {', '.join(one.dpkg for one in targets().values())}",
            )
        if of.is_host:
            architecture = None
    return _Kernels(log, architecture, spec.suite)


class _Kernels(Shelf[CachedKernel]):
    """Binary kernels of an architecture, in the cache of kernels."""

    start = "linux-image-"

    def spec(self, package: str, version: str | None) -> DebSpec:
        return DebSpec(package, version, self.architecture, suite=self.suite)

    def load(self, package: str, version: str) -> CachedKernel | None:
        return load_cached(kernel_folder(package, version, self.architecture))

    def cached(self) -> list[tuple[str, str, float]]:
        return [
            (e.package, e.version, e.path.stat().st_mtime)
            for e in cached_kernels()
            if e.architecture == self.architecture and not e.spec
        ]

    def is_part(self, package: str, dependency: str) -> bool:
        """Since Debian 14 an image package only depends on those that hold the kernel; Ubuntu's
        holds the kernel, and depends on its modules.
        """
        return dependency.removesuffix(_release(package)) in _PARTS

    def optional_parts(self, package: str) -> tuple[str, ...]:
        """Ubuntu has the modules that few machines need in a package of their own."""
        return (f"linux-modules-extra-{_release(package)}",)

    def fetch(
        self, package: str, version: str, download: Callable[[Path], list[Path]]
    ) -> CachedKernel:
        """Downloads and unpacks one kernel, unless another process did so meanwhile."""
        folder = kernel_folder(package, version, self.architecture)
        with locked(folder.name, f"fetching {folder.name}", self.log):
            if entry := self.load(package, version):
                return entry
            with published_folder(folder, self.log) as partial:
                archives = download(partial)
                self.log(f"unpacking {package}")
                for archive in archives:
                    unpack_kernel(archive, partial)
                    remove(archive.parent)
                found = record_of(partial, package, version, "see: apt-cache search linux-image")
                entry = msgspec.structs.replace(
                    found,
                    architecture=self.architecture,
                    suite=None if self.suite == host_suite() else self.suite,
                )
                write_json(partial / RECORD, entry)
            return entry


def _release(package: str) -> str:
    """What the names of all packages of one kernel end in."""
    return package.removeprefix("linux-image-").removeprefix("unsigned-")
