# SPDX-License-Identifier: GPL-2.0-or-later
"""deb:PACKAGE[:ARCH][=VERSION] -> kernel: downloaded by apt, unpacked without root, kept."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from kdelta.host.command import Talk
from kdelta.host.files import new_folder, remove, sha256_file, write_atomic
from kdelta.host.lock import locked
from kdelta.host.target import targets
from kdelta.kernels.model import Kernel, kernel_identity
from kdelta.kernels.packages.cache import RECORD, CachedKernel, cached_kernels, kernel_folder, load
from kdelta.kernels.packages.image import hash_modules
from kdelta.kernels.packages.inspect import inspect
from kdelta.kernels.packages.packages import Shelf
from kdelta.kernels.packages.unpack import DEVICE_TREES, unpack_kernel
from kdelta.spec.errors import UserError
from kdelta.spec.kernel import DebSpec


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
        return load(package, version, self.architecture)

    def cached(self) -> list[tuple[str, str, float]]:
        return [
            (e.package, e.version, _folder(e).stat().st_mtime)
            for e in cached_kernels()
            if e.architecture == self.architecture
        ]

    def fetch(self, package: str, version: str, download: Callable[[Path], Path]) -> CachedKernel:
        """Downloads and unpacks one package, unless another process did so meanwhile."""
        folder = kernel_folder(package, version, self.architecture)
        with locked(folder.name, f"fetching {folder.name}", self.talk):
            if entry := load(package, version, self.architecture):
                return entry
            with new_folder(folder) as partial:
                archive = download(partial)
                self.talk(f"unpacking {package}")
                unpack_kernel(archive, partial)
                remove(archive)
                entry = _record(self.spec(package, version), partial)
                write_atomic(partial / RECORD, msgspec.json.format(msgspec.json.encode(entry)))
            return entry


def _folder(entry: CachedKernel) -> Path:
    return kernel_folder(entry.package, entry.version, entry.architecture)


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
