# SPDX-License-Identifier: GPL-2.0-or-later
"""image:PATH -> kernel: an image that is there already, perhaps with modules, device trees."""

import hashlib
import re
from pathlib import Path

from kdelta.host.command import Log, quiet
from kdelta.host.dirs import cache_dir
from kdelta.host.files import expanded, sha256_file, user_errors, write_atomic
from kdelta.host.in_use import use
from kdelta.host.lock import fill_once
from kdelta.kernels.model import Kernel, kernel_identity
from kdelta.kernels.packages.inspect import ImageFacts, check_file, inspect
from kdelta.kernels.packages.unpack import PLAIN_IMAGES, unpack_kernel
from kdelta.spec.errors import UserError
from kdelta.spec.kernel import ImageSpec

MODULE_ENDINGS = (".ko", ".ko.gz", ".ko.xz", ".ko.zst")


# What a build or a CI service leaves in one folder, the likeliest first: KernelCI and tuxmake have
# bzImage, zImage, Image or Image.gz with modules.tar.xz, 0-day vmlinuz-RELEASE with modules.cgz,
# make dir-pkg boot/ and lib/modules/, and openSUSE all in the latter. A vmlinux next to another
# image is for debuggers.
_IMAGES = (
    *("bzImage*", "zImage*", "Image", "Image.gz", "vmlinuz*", "boot/vmlinuz-*"),
    *(
        f"{below}lib/modules/*/{name}"
        for name in ("vmlinuz", *PLAIN_IMAGES)
        for below in ("", "usr/")
    ),
    "vmlinux",
)
_MODULES = ("modules.tar*", "modules-*.tar*", "modules.tgz", "modules.cgz")
_CONFIGS = ("boot/config-{}", ".config", "config", "kernel.config")
_MODULE_FOLDERS = ("lib/modules", "usr/lib/modules")
_ARCHIVE = re.compile(r"\.(?:tar(?:\.\w+)?|tgz|cgz)")


def obtain_image(spec: ImageSpec, log: Log = quiet) -> Kernel:
    """Return the kernel of an image file, or of a folder or an archive (make tar-pkg) that holds
    one; UserError when the lab cannot boot it.
    """
    path = expanded(spec.path)
    if _is_archive(path):
        path = _unpacked(path, log)
    folder = path if path.is_dir() and not (path / "arch").is_dir() else None
    if folder is not None:
        path = _image_in(folder, spec.path)
    facts = inspect(path)
    path = path.absolute()
    modules = _modules(spec, folder, facts.release, log)
    config = _find_config(path, facts.release, folder, modules)
    if config is None:
        log(f"the config of {path.name} is not known: name it config-{facts.release}, next to it")
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


def check_image(spec: ImageSpec) -> None:
    """Raise UserError if there is nothing at the path of an image, or it cannot be read."""
    path = expanded(spec.path)
    if not path.is_dir():
        check_file(path)
        with user_errors(path), path.open("rb"):
            pass


def _is_archive(path: Path) -> bool:
    return bool(_ARCHIVE.search(path.name)) and path.is_file()


def _unpacked(archive: Path, log: Log) -> Path:
    """The folder of the cache with what an archive has of a kernel."""
    folder = cache_dir("unpacked") / sha256_file(archive)[:32]
    return fill_once(
        folder, f"unpacking {archive.name}", log, lambda made: unpack_kernel(archive, made)
    ).absolute()


def _image_in(folder: Path, named: str) -> Path:
    """The kernel image of a folder; UserError if it has none, or several that are as likely."""
    for pattern in _IMAGES:
        found = [path for path in sorted(folder.glob(pattern)) if path.is_file()]
        if len(found) > 1:
            names = ", ".join(str(path.relative_to(folder)) for path in found)
            raise UserError(f"{named} has several kernels: {names}", f"name one: image:{found[0]}")
        if found:
            return found[0]
    raise UserError(
        f"{named} cannot be booted: it has no kernel image",
        f"what is looked for: {', '.join(_IMAGES)}",
    )


def _modules(spec: ImageSpec, folder: Path | None, release: str, log: Log) -> Path | None:
    """The folder of its modules: where the spec says, else what the image's folder has."""
    if spec.modules:
        named = expanded(spec.modules)
        return _find_modules(_unpacked(named, log) if _is_archive(named) else named, release)
    if folder is None:
        return None
    for below in _MODULE_FOLDERS:
        if (folder / below / release).is_dir():
            return (folder / below / release).absolute()
    if folder.name == release and (folder / "kernel").is_dir():
        return folder.absolute()
    found = (path for pattern in _MODULES for path in sorted(folder.glob(pattern)))
    archives = [path for path in found if path.is_file()]
    return _find_modules(_unpacked(archives[0], log), release) if archives else None


def bootable(path: Path, facts: ImageFacts) -> Path:
    """The image as machines take it: itself, or its unpacked copy in the cache."""
    if facts.unpacked is None:
        return path
    copy = cache_dir("images") / f"{hashlib.sha256(facts.unpacked).hexdigest()[:32]}"
    if not use(copy) or copy.read_bytes() != facts.unpacked:
        write_atomic(copy, facts.unpacked)
        use(copy)
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
    for below in (*_MODULE_FOLDERS, ""):
        if (folder := named / below / release).is_dir():
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


def _find_config(
    image: Path, release: str, folder: Path | None, modules: Path | None
) -> Path | None:
    """The config that lies where distributions and the kernel's own build leave it, with the image
    or with the modules, or where CI services leave it in the image's folder.
    """
    places = [image.with_name(f"config-{release}")]
    if folder is not None:
        places += [folder / place.format(release) for place in _CONFIGS]
    if image.name == "vmlinux":
        places.append(image.with_name(".config"))
    if _is_in_build(image):
        places.append(image.parents[3] / ".config")
    # openSUSE and Fedora have image and config in the folder of the modules.
    places += [image.with_name("config")] + ([modules / "config"] if modules else [])
    if image.parent.name == "boot":
        root = image.parent.parent
        places += [root / below / release / "config" for below in _MODULE_FOLDERS]
    return next((place for place in places if place.is_file()), None)


def _find_device_trees(image: Path, release: str) -> Path | None:
    """Return the folder below which device trees lie: next to the image, where the kernel's own
    build makes them, or where Debian's packages have them, unpacked or installed.
    """
    if any(image.parent.glob("*.dtb")):
        return image.parent
    places = [image.parent / ("dts" if _is_in_build(image) else "dtb")]
    places += [
        root / "usr/lib" / below
        for root in (image.parent.parent, Path("/"))
        for below in (f"linux-image-{release}", f"modules/{release}/dtb")
    ]
    # Since Linux 6.5 there is a folder a vendor.
    found = (place for place in places if any(place.glob("*.dtb")) or any(place.glob("*/*.dtb")))
    return next(found, None)


def _is_in_build(image: Path) -> bool:
    above = image.parent.parts[-3:]
    return len(above) == 3 and (above[0], above[2]) == ("arch", "boot")
