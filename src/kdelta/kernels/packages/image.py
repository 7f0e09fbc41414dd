# SPDX-License-Identifier: GPL-2.0-or-later
"""image:PATH -> kernel: an image that is there already, perhaps with modules, device trees."""

import hashlib
from pathlib import Path

from kdelta.host.dirs import cache_dir
from kdelta.host.files import sha256_file, write_atomic
from kdelta.kernels.model import Kernel, kernel_identity
from kdelta.kernels.packages.inspect import ImageFacts, inspect
from kdelta.spec.errors import UserError
from kdelta.spec.kernel import ImageSpec

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
    device_trees = _find_device_trees(path, facts.release)
    return Kernel(
        identity=kernel_identity(facts.arch, sha256_file(path), hash_modules(modules)),
        spec=str(spec),
        image=str(bootable(path, facts)),
        arch=facts.arch,
        release=facts.release,
        config=str(config) if config else None,
        modules=str(modules) if modules else None,
        banner=facts.banner,
        image_format=facts.image_format,
        device_trees=str(device_trees) if device_trees else None,
    )


def bootable(path: Path, facts: ImageFacts) -> Path:
    """The image as machines take it: itself, or its unpacked copy in the cache."""
    if facts.unpacked is None:
        return path
    copy = cache_dir("images") / f"{hashlib.sha256(facts.unpacked).hexdigest()[:32]}"
    if not copy.is_file() or copy.stat().st_size != len(facts.unpacked):
        write_atomic(copy, facts.unpacked)
    return copy


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
    if _is_in_build(image):
        places.append(image.parents[3] / ".config")
    return next((place for place in places if place.is_file()), None)


def _find_device_trees(image: Path, release: str) -> Path | None:
    """The folder below which device trees lie: next to the image, where the kernel's own build
    makes them, or where Debian's packages have them, unpacked or installed.
    """
    if any(image.parent.glob("*.dtb")):
        return image.parent
    places = [image.parent / "dts"] if _is_in_build(image) else []
    places += [
        root / "usr/lib" / f"linux-image-{release}" for root in (image.parent.parent, Path("/"))
    ]
    # Since Linux 6.5 there is a folder a vendor.
    found = (place for place in places if any(place.glob("*.dtb")) or any(place.glob("*/*.dtb")))
    return next(found, None)


def _is_in_build(image: Path) -> bool:
    above = image.parent.parts[-3:]
    return len(above) == 3 and (above[0], above[2]) == ("arch", "boot")
