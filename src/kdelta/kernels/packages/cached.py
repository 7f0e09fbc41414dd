# SPDX-License-Identifier: GPL-2.0-or-later
"""The cache of packaged kernels: one folder each, with a record of what is in it."""

from pathlib import Path

import msgspec

from kdelta.host.dirs import cache_dir
from kdelta.host.files import PARTIAL, lab_errors, read_json, sha256_file
from kdelta.host.manifest import whole_record
from kdelta.kernels.model import Kernel, kernel_identity
from kdelta.kernels.packages.image import hash_modules
from kdelta.kernels.packages.inspect import inspect
from kdelta.kernels.packages.unpack import DEVICE_TREES, PLAIN_IMAGES
from kdelta.spec.errors import UserError
from kdelta.spec.kernel import DebSpec

RECORD = "kernel.json"
_IMAGES = (
    "boot/vmlinuz-*",
    "lib/modules/*/vmlinuz",
    *(f"lib/modules/*/{name}" for name in PLAIN_IMAGES),
    "boot/vmlinux-*",
    "lib/modules/*/vmlinux",
)


class CachedKernel(msgspec.Struct, frozen=True):
    """The record of a cached kernel; paths are relative to its folder, which may be moved.
    `architecture` is what Debian calls that of the package, None for the host's. `spec` obtains it
    again, and `folder` is its folder's name; both are empty for a package of apt, whose `suite` is
    the release that it is of, None for the host's.
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
    suite: str | None = None
    spec: str = ""
    folder: str = ""

    @property
    def text(self) -> str:
        """The spec that obtains it again."""
        if self.spec:
            return self.spec
        return str(DebSpec(self.package, self.version, self.architecture, suite=self.suite))

    @property
    def path(self) -> Path:
        """Its folder, as things are now."""
        if self.folder:
            return cache_dir("kernels") / self.folder
        return kernel_folder(self.package, self.version, self.architecture)

    def kernel(self) -> Kernel:
        """The kernel, with the paths that its files have now."""
        folder = self.path
        return Kernel(
            identity=self.identity,
            spec=self.text,
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
    return [entry for folder in folders if (entry := read_json(folder / RECORD, CachedKernel))]


def load_cached(folder: Path) -> CachedKernel | None:
    """The record of the kernel in that folder, if all its files are as they were made."""
    return whole_record(folder, RECORD, CachedKernel, lambda entry: _is_of(folder, entry))


def _is_of(folder: Path, entry: CachedKernel) -> bool:
    """Whether a folder without a manifest holds that kernel."""
    present = [entry.image, *filter(None, (entry.config, entry.modules))]
    if not all((folder / path).exists() for path in present):
        return False
    modules = hash_modules(folder / entry.modules if entry.modules else None)
    sha256 = sha256_file(folder / entry.image)
    return kernel_identity(entry.arch, sha256, modules) == entry.identity


def record_of(unpacked: Path, package: str, version: str, hint: str) -> CachedKernel:
    """The record of what was unpacked into that folder; UserError, with the hint, if it is no
    kernel, or none for the lab.
    """
    found = [path for place in _IMAGES for path in sorted(unpacked.glob(place))]
    if not found:
        raise UserError(f"the package {package} holds no kernel", hint)
    image = found[0]
    facts = inspect(image)
    if facts.unpacked is not None:
        image.write_bytes(facts.unpacked)
    modules = unpacked / "lib/modules" / facts.release
    configs = unpacked / "boot" / f"config-{facts.release}", modules / "config"
    config = next((path for path in configs if path.is_file()), None)
    image_sha256 = sha256_file(image)
    present = modules if modules.is_dir() else None
    return CachedKernel(
        package=package,
        version=version,
        identity=kernel_identity(facts.arch, image_sha256, hash_modules(present)),
        arch=facts.arch,
        release=facts.release,
        banner=facts.banner,
        image=str(image.relative_to(unpacked)),
        image_sha256=image_sha256,
        config=str(config.relative_to(unpacked)) if config else None,
        modules=str(modules.relative_to(unpacked)) if present else None,
        image_format=facts.image_format,
        device_trees=DEVICE_TREES if (unpacked / DEVICE_TREES).is_dir() else None,
    )
