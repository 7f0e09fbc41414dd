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
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from kdelta.host.command import start
from kdelta.host.files import lab_errors
from kdelta.kernels.arches import kernel_arches
from kdelta.spec.errors import LabError, UserError

# A distribution's largest kernels have some 5,000 modules in 600 MB.
MAX_FILES = 50_000
MAX_BYTES = 8 << 30

_WANTED = re.compile(r"(?:boot/(?:vmlinuz|vmlinux|config)-[^/]+|(?:usr/)?(lib/modules/[^/]+/.+))")
_DEVICE_TREE = re.compile(r"usr/lib/linux-image-[^/]+/(?:[^/]+/)?([^/]+)\.dtb")
DEVICE_TREES = "device-trees"
"""The folder that they are unpacked into."""


_SOURCE = re.compile(r"(?:\./)?usr/src/linux-source-[^/]+\.tar(?:\.(?:xz|gz|bz2|zst))?")


def unpack_kernel(package: Path, folder: Path) -> None:
    """Unpacks what `package` (a .deb) has of a kernel into `folder`, which is there and empty.

    LabError when the package is damaged or holds what no kernel package has.
    """
    with _opened(package) as archive:
        _unpack(archive, package.name, folder)


def extract_source(package: Path, folder: Path) -> Path:
    """Takes the packed source tree out of a linux-source package into `folder`.

    LabError when the package is damaged, UserError when it holds no source.
    """
    target = folder / "source.tar"
    found = False
    with _opened(package) as archive:
        for member in archive:
            if found or not member.isreg() or not _SOURCE.fullmatch(member.name):
                continue
            source = archive.extractfile(member)
            assert source is not None
            with lab_errors("unpacking", target), target.open("xb") as file:
                shutil.copyfileobj(source, file, 1 << 20)
            found = True
    if not found:
        raise UserError(
            f"the package {package.name} holds no packed source of a kernel",
            "see: apt-cache search linux-source",
        )
    return target


@contextlib.contextmanager
def _opened(package: Path) -> Iterator[tarfile.TarFile]:
    """The files of a .deb, to be read once from the first to the last."""
    failure = ""
    # Leaving early closes the pipe, which ends dpkg-deb.
    with (
        tempfile.TemporaryFile() as errors,
        start(["dpkg-deb", "--fsys-tarfile", package], errors) as process,
    ):
        assert process.stdout is not None
        try:
            with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
                yield archive
            while process.stdout.read(1 << 20):
                pass
        except (tarfile.TarError, EOFError) as error:
            failure = str(error)
        process.stdout.close()
        if process.wait() != 0 or failure:
            errors.seek(0)
            said = errors.read().decode("utf-8", "replace").strip().splitlines()
            raise LabError(
                f"the package {package.name} is damaged: {said[-1] if said else failure}"
            )


def _unpack(archive: tarfile.TarFile, package: str, folder: Path) -> None:
    files = total_bytes = 0
    for member in archive:
        path = wanted_path(member.name, package)
        # Links and devices are left out: modules have build and source, which lead elsewhere.
        if path is None or not member.isreg():
            continue
        files += 1
        total_bytes += member.size
        if files > MAX_FILES or total_bytes > MAX_BYTES:
            raise LabError(f"the package {package} is refused: it is too large for a kernel")
        source = archive.extractfile(member)
        assert source is not None
        with lab_errors("unpacking", folder / path):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            # O_EXCL: an archive that names a file twice is refused too.
            descriptor = os.open(
                folder / path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644
            )
            with os.fdopen(descriptor, "wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)


def wanted_path(name: str, package: str) -> str | None:
    """Where an archive's entry goes, relative; None for what a kernel does not need. LabError for a
    name that leads elsewhere.
    """
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts:
        raise LabError(
            f"the package {package} is refused: it holds the path {name!r}",
            "that is not a kernel package as distributions make them; do not install it",
        )
    if (tree := _DEVICE_TREE.fullmatch("/".join(parts))) and tree[1] in _wanted_device_trees():
        return f"{DEVICE_TREES}/{tree[1]}.dtb"
    # Debian 13 ships lib/modules below usr/.
    match = _WANTED.fullmatch("/".join(parts))
    return None if match is None else match.group(1) or match.group(0)


@functools.cache
def _wanted_device_trees() -> frozenset[str]:
    """Those that machines of the lab have, of the hundreds in a package."""
    return frozenset(name for arch in kernel_arches().values() for name in arch.device_trees)
