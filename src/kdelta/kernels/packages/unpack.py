# SPDX-License-Identifier: GPL-2.0-or-later
"""Takes a kernel, or its source, out of a package; whatever that holds, nothing else is written.

Only regular files below boot/ and lib/modules/ and the device trees of machines are written, by
names that were checked, into a folder in which no link is ever made. So no entry can lead outside.
"""

import contextlib
import functools
import os
import re
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from kdelta.host.command import piped
from kdelta.host.files import lab_errors
from kdelta.kernels.arches import kernel_arches
from kdelta.kernels.packages.members import ArchiveMember, Counted, opened, tar_members
from kdelta.kernels.packages.packed import PackedError
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.limits import ARCHIVE_DEPTH
from kdelta.spec.limits import KERNEL_BYTES as MAX_BYTES
from kdelta.spec.limits import KERNEL_FILES as MAX_FILES

_WANTED = re.compile(r"(?:boot/(?:vmlinuz|vmlinux|config)-[^/]+|(?:usr/)?(lib/modules/[^/]+/.+))")
_DEVICE_TREE = re.compile(
    r"(?:usr/lib/linux-image-[^/]+|(?:usr/)?lib/modules/[^/]+/dtb)/(?:[^/]+/)?([^/]+)\.dtb"
)
"""Debian has them with the modules since 14."""
DEVICE_TREES = "device-trees"
"""The folder that they are unpacked into."""

PLAIN_IMAGES = ("Image", "zImage")
"""What openSUSE calls the images of arm64, RISC-V and ARM, which lie with the modules."""


_DEB = b"!<arch>\ndebian"
_SOURCE = re.compile(r"(?:\./)?usr/src/linux-source-[^/]+\.tar(?:\.(?:xz|gz|bz2|zst))?")


def unpack_kernel(package: Path, folder: Path) -> None:
    """Unpacks what `package` has of a kernel into `folder`, where no entry has been written yet: a
    .deb, an .rpm, or an archive of files (tar or cpio, packed or not).

    LabError when the package is damaged or holds what no kernel package has.
    """
    with _opened(package) as members:
        _unpack(members, package.name, folder)


def extract_source(package: Path, folder: Path) -> Path:
    """Takes the packed source tree out of a linux-source package into `folder`.

    LabError when the package is damaged, UserError when it holds no source.
    """
    target = folder / "source.tar"
    with _opened(package) as members:
        for member in members:
            if not target.exists() and member.is_file and _SOURCE.fullmatch(member.name):
                with lab_errors("unpacking", target), target.open("xb") as file:
                    shutil.copyfileobj(member.open(), file, 1 << 20)
    if not target.exists():
        raise UserError(
            f"the package {package.name} holds no packed source of a kernel",
            "see: apt-cache search linux-source",
        )
    return target


@contextlib.contextmanager
def _opened(package: Path) -> Iterator[Iterator[ArchiveMember]]:
    """The files of a package, to be read once from the first to the last."""
    try:
        with lab_errors("reading", package), package.open("rb") as file:
            is_deb = file.read(len(_DEB)) == _DEB
        if not is_deb:
            with opened(package) as members:
                yield members
            return
        with piped(["dpkg-deb", "--fsys-tarfile", package], PackedError) as stream:
            counted = Counted(stream)
            yield tar_members(counted)
            while counted.read(1 << 20):
                pass
    except (PackedError, tarfile.TarError, EOFError) as error:
        raise LabError(
            f"the package {package.name} is damaged: {error}", "fetch it again, or name another one"
        ) from error


def _unpack(members: Iterator[ArchiveMember], package: str, folder: Path) -> None:
    files = total_bytes = 0
    for member in members:
        path = wanted_path(member.name, package)
        # Links and devices are left out: modules have build and source, which lead elsewhere.
        if path is None or not member.is_file:
            continue
        files += 1
        total_bytes += member.bytes
        if files > MAX_FILES or total_bytes > MAX_BYTES:
            raise LabError(f"the package {package} is refused: it is too large for a kernel")
        with lab_errors("unpacking", folder / path):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            # O_EXCL: an archive that names a file twice is refused too.
            descriptor = os.open(
                folder / path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644
            )
            with os.fdopen(descriptor, "wb") as target:
                shutil.copyfileobj(member.open(), target, 1 << 20)


def wanted_path(name: str, package: str) -> str | None:
    """Return where an archive's entry goes, relative; None for what a kernel does not need.
    LabError for a name that leads elsewhere.
    """
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts or "\0" in name or len(parts) > ARCHIVE_DEPTH:
        raise LabError(
            f"the package {package} is refused: it holds the path {name[:200]!r}",
            "that is not a kernel package as distributions make them; do not install it",
        )
    if tree := _DEVICE_TREE.fullmatch("/".join(parts)):
        return f"{DEVICE_TREES}/{tree[1]}.dtb" if tree[1] in _wanted_device_trees() else None
    # Debian 13 ships lib/modules below usr/.
    match = _WANTED.fullmatch("/".join(parts))
    return None if match is None else match.group(1) or match.group(0)


@functools.cache
def _wanted_device_trees() -> frozenset[str]:
    """Those that machines of the lab have, of the hundreds in a package."""
    return frozenset(name for arch in kernel_arches().values() for name in arch.device_trees)
