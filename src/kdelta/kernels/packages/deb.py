# SPDX-License-Identifier: GPL-2.0-or-later
"""deb:PACKAGE[:ARCH][=VERSION] -> kernel: downloaded by apt, unpacked without root, and kept in a
cache: one folder each, with a record of what is in it.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from kdelta.host.command import Talk
from kdelta.host.dirs import cache_dir
from kdelta.host.files import (
    PARTIAL,
    lab_errors,
    new_folder,
    read_json,
    remove,
    sha256_file,
    write_json,
)
from kdelta.host.lock import locked
from kdelta.host.target import targets
from kdelta.kernels.model import Kernel, kernel_identity
from kdelta.kernels.packages.image import hash_modules
from kdelta.kernels.packages.inspect import inspect
from kdelta.kernels.packages.packages import Shelf
from kdelta.kernels.packages.unpack import DEVICE_TREES, unpack_kernel
from kdelta.spec.errors import UserError
from kdelta.spec.kernel import DebSpec

RECORD = "kernel.json"


class CachedKernel(msgspec.Struct, frozen=True):
    """The record of a cached kernel; paths are relative to its folder, which may be moved.
    `architecture` is what Debian calls that of the package, None for the host's.
    """

    package: str
    version: str
    identity: str
    arch: str
    release: str
    banner: str
    image: str
    image_sha256: str
    config: str | None
    modules: str | None
    architecture: str | None = None
    image_format: str = "bzImage"
    device_trees: str | None = None

    def kernel(self) -> Kernel:
        """The kernel, with the paths that its files have now."""
        folder = kernel_folder(self.package, self.version, self.architecture)
        return Kernel(
            identity=self.identity,
            spec=str(DebSpec(self.package, self.version, self.architecture)),
            image=str(folder / self.image),
            arch=self.arch,
            release=self.release,
            config=str(folder / self.config) if self.config else None,
            modules=str(folder / self.modules) if self.modules else None,
            banner=self.banner,
            image_format=self.image_format,
            device_trees=str(folder / self.device_trees) if self.device_trees else None,
        )


def kernel_folder(package: str, version: str, architecture: str | None) -> Path:
    """Where that package's kernel is or would be; no architecture is this host's."""
    of = f":{architecture}" if architecture else ""
    return cache_dir("kernels") / f"{package}{of}={version}"


def cached_kernels() -> list[CachedKernel]:
    """All kernels in the cache, by package."""
    root = cache_dir("kernels")
    with lab_errors("reading", root):
        folders = sorted(path for path in root.iterdir() if not path.name.endswith(PARTIAL))
    entries = (read_json(folder / RECORD, CachedKernel) for folder in folders)
    return [entry for entry in entries if entry is not None]


def obtain_deb(spec: DebSpec, talk: Talk) -> Kernel:
    """The kernel of a package. A package that only depends on the current kernel is followed to it.

    UserError for a package or version that does not exist or holds no kernel for the lab; LabError
    when it has to be downloaded and cannot be.
    """
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
    return _Kernels(talk, architecture).obtain(spec.package, spec.version).kernel()


class _Kernels(Shelf[CachedKernel]):
    """Binary kernels of an architecture, in the cache of kernels."""

    start = "linux-image-"

    def spec(self, package: str, version: str | None) -> DebSpec:
        return DebSpec(package, version, self.architecture)

    def load(self, package: str, version: str) -> CachedKernel | None:
        folder = kernel_folder(package, version, self.architecture)
        entry = read_json(folder / RECORD, CachedKernel)
        is_whole = (
            entry is not None
            and (folder / entry.image).is_file()
            and sha256_file(folder / entry.image) == entry.image_sha256
            and all(not path or (folder / path).exists() for path in (entry.config, entry.modules))
        )
        return entry if is_whole else None

    def cached(self) -> list[tuple[str, str, float]]:
        return [
            (
                e.package,
                e.version,
                kernel_folder(e.package, e.version, self.architecture).stat().st_mtime,
            )
            for e in cached_kernels()
            if e.architecture == self.architecture
        ]

    def fetch(self, package: str, version: str, download: Callable[[Path], Path]) -> CachedKernel:
        """Downloads and unpacks one package, unless another process did so meanwhile."""
        folder = kernel_folder(package, version, self.architecture)
        with locked(folder.name, f"fetching {folder.name}", self.talk):
            if entry := self.load(package, version):
                return entry
            with new_folder(folder) as partial:
                archive = download(partial)
                self.talk(f"unpacking {package}")
                unpack_kernel(archive, partial)
                remove(archive)
                entry = _record(self.spec(package, version), partial)
                write_json(partial / RECORD, entry)
            return entry


def _record(spec: DebSpec, folder: Path) -> CachedKernel:
    images = sorted(folder.glob("boot/vmlinu[xz]-*"))
    if not images:
        raise UserError(
            f"the package {spec.package} holds no kernel", "see: apt-cache search linux-image"
        )
    facts = inspect(images[0])
    if facts.unpacked is not None:
        images[0].write_bytes(facts.unpacked)
    modules = folder / "lib/modules" / facts.release
    config = folder / "boot" / f"config-{facts.release}"
    image_sha256 = sha256_file(images[0])
    present = modules if modules.is_dir() else None
    return CachedKernel(
        package=spec.package,
        version=spec.version or "",
        identity=kernel_identity(facts.arch, image_sha256, hash_modules(present)),
        arch=facts.arch,
        release=facts.release,
        banner=facts.banner,
        image=str(images[0].relative_to(folder)),
        image_sha256=image_sha256,
        config=str(config.relative_to(folder)) if config.is_file() else None,
        modules=str(modules.relative_to(folder)) if present else None,
        architecture=spec.architecture,
        image_format=facts.image_format,
        device_trees=DEVICE_TREES if (folder / DEVICE_TREES).is_dir() else None,
    )
