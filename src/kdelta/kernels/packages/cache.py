# SPDX-License-Identifier: GPL-2.0-or-later
"""The cache of kernels from packages: one folder each, with a record of what is in it."""

import contextlib
from pathlib import Path

import msgspec

from kdelta.host.dirs import cache_dir
from kdelta.host.files import PARTIAL, lab_errors, sha256_file
from kdelta.kernels.model import Kernel
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


def kernel_folder(package: str, version: str, architecture: str | None = None) -> Path:
    """Where that package's kernel is or would be; no architecture is this host's."""
    of = f":{architecture}" if architecture else ""
    return cache_dir("kernels") / f"{package}{of}={version}"


def load(package: str, version: str, architecture: str | None = None) -> CachedKernel | None:
    """The cached kernel of that package, if it is there and its image is undamaged."""
    folder = kernel_folder(package, version, architecture)
    entry = _read(folder)
    if entry is None or not (folder / entry.image).is_file():
        return None
    if sha256_file(folder / entry.image) != entry.image_sha256:
        return None
    if any(path and not (folder / path).exists() for path in (entry.config, entry.modules)):
        return None
    return entry


def cached_kernels() -> list[CachedKernel]:
    """All kernels in the cache, by package."""
    root = cache_dir("kernels")
    with lab_errors("reading", root):
        folders = sorted(path for path in root.iterdir() if not path.name.endswith(PARTIAL))
    return [entry for folder in folders if (entry := _read(folder)) is not None]


def _read(folder: Path) -> CachedKernel | None:
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode((folder / RECORD).read_bytes(), type=CachedKernel)
    return None
