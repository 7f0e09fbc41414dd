# SPDX-License-Identifier: GPL-2.0-or-later
"""deb:PACKAGE[=VERSION] -> kernel: downloaded by apt, unpacked without root, kept in the cache."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from kdelta.host.files import new_folder, remove, sha256_file, write_atomic
from kdelta.host.lock import locked
from kdelta.kernels.cache import RECORD, CachedKernel, cached_kernels, kernel_folder, load
from kdelta.kernels.image import ARCH, hash_modules
from kdelta.kernels.inspect import inspect
from kdelta.kernels.model import Kernel, kernel_identity
from kdelta.kernels.packages import Shelf, Talk
from kdelta.kernels.unpack import unpack_kernel
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
    return _Kernels(talk).obtain(spec.package, spec.version).kernel()


class _Kernels(Shelf[CachedKernel]):
    """Binary kernels, in the cache of kernels."""

    start = "linux-image-"

    def spec(self, package: str, version: str | None) -> DebSpec:
        return DebSpec(package, version)

    def load(self, package: str, version: str) -> CachedKernel | None:
        return load(package, version)

    def cached(self) -> list[tuple[str, str, float]]:
        return [
            (e.package, e.version, kernel_folder(e.package, e.version).stat().st_mtime)
            for e in cached_kernels()
        ]

    def fetch(self, package: str, version: str, download: Callable[[Path], Path]) -> CachedKernel:
        """Downloads and unpacks one package, unless another process did so meanwhile."""
        folder = kernel_folder(package, version)
        with locked(folder.name, f"fetching {folder.name}", self.talk):
            if entry := load(package, version):
                return entry
            with new_folder(folder) as partial:
                archive = download(partial)
                self.talk(f"unpacking {package}")
                unpack_kernel(archive, partial)
                remove(archive)
                entry = _record(package, version, partial)
                write_atomic(partial / RECORD, msgspec.json.format(msgspec.json.encode(entry)))
            return entry


def _record(package: str, version: str, folder: Path) -> CachedKernel:
    images = sorted(folder.glob("boot/vmlinuz-*"))
    if not images:
        raise UserError(
            f"the package {package} holds no kernel", "see: apt-cache search linux-image"
        )
    facts = inspect(images[0])
    modules = folder / "lib/modules" / facts.release
    config = folder / "boot" / f"config-{facts.release}"
    image_sha256 = sha256_file(images[0])
    present = modules if modules.is_dir() else None
    return CachedKernel(
        package=package,
        version=version,
        identity=kernel_identity(ARCH, image_sha256, hash_modules(present)),
        arch=ARCH,
        release=facts.release,
        banner=facts.banner,
        image=str(images[0].relative_to(folder)),
        image_sha256=image_sha256,
        config=str(config.relative_to(folder)) if config.is_file() else None,
        modules=str(modules.relative_to(folder)) if present else None,
    )
