# SPDX-License-Identifier: GPL-2.0-or-later
"""image:PATH -> kernel: a bzImage or vmlinux that is there already, perhaps with its modules."""

from pathlib import Path

from kdelta.host.files import sha256_file
from kdelta.kernels.inspect import inspect
from kdelta.kernels.model import Kernel, kernel_identity
from kdelta.spec.errors import UserError
from kdelta.spec.kernel import ImageSpec

ARCH = "x86_64"
MODULE_ENDINGS = (".ko", ".ko.gz", ".ko.xz", ".ko.zst")


def obtain_image(spec: ImageSpec) -> Kernel:
    """The kernel of an image file; UserError when the lab cannot boot it."""
    path = Path(spec.path).expanduser()
    facts = inspect(path)
    path = path.absolute()
    modules = (
        _find_modules(Path(spec.modules).expanduser(), facts.release) if spec.modules else None
    )
    config = _find_config(path, facts.release)
    return Kernel(
        identity=kernel_identity(ARCH, sha256_file(path), hash_modules(modules)),
        spec=str(spec),
        image=str(path),
        arch=ARCH,
        release=facts.release,
        config=str(config) if config else None,
        modules=str(modules) if modules else None,
        banner=facts.banner,
        image_format=facts.image_format,
    )


def hash_modules(folder: Path | None) -> dict[str, str] | None:
    """Each module's path below `folder`, with the hash of its file."""
    if folder is None:
        return None
    return {
        path.relative_to(folder).as_posix(): sha256_file(path)
        for path in sorted(folder.rglob("*.ko*"))
        if path.name.endswith(MODULE_ENDINGS) and path.is_file()
    }


def _find_modules(named: Path, release: str) -> Path:
    for folder in (
        named / "lib/modules" / release,
        named / "usr/lib/modules" / release,
        named / release,
    ):
        if folder.is_dir():
            return folder.absolute()
    if not named.is_dir():
        raise UserError(f"no such folder: {named}", "modules= names where the modules are")
    if named.name == release or any(
        (named / sign).exists() for sign in ("modules.order", "kernel")
    ):
        return named.absolute()
    others = sorted(path.name for path in (named / "lib/modules").glob("*"))
    raise UserError(
        f"{named} has no modules of {release}, the release of this kernel",
        f"it has those of {', '.join(others)}"
        if others
        else f"name the folder lib/modules/{release}",
    )


def _find_config(image: Path, release: str) -> Path | None:
    """The config that lies where distributions and the kernel's own build leave it."""
    places = [image.with_name(f"config-{release}")]
    if image.name == "vmlinux":
        places.append(image.with_name(".config"))
    if image.parent.parts[-3:] in (("arch", "x86", "boot"), ("arch", "x86_64", "boot")):
        places.append(image.parents[3] / ".config")
    return next((place for place in places if place.is_file()), None)
