# SPDX-License-Identifier: GPL-2.0-or-later
"""Takes the kernel out of a binary package; whatever the package holds, nothing else is written.

Only regular files below boot/ and lib/modules/ are written, by names that were checked, into a
folder in which no link is ever made. So no entry can lead outside.
"""

import os
import re
import shutil
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

from kdelta.host.command import start
from kdelta.host.files import lab_errors
from kdelta.spec.errors import LabError

# A distribution's largest kernels have some 5,000 modules in 600 MB.
MAX_FILES = 50_000
MAX_BYTES = 8 << 30

_WANTED = re.compile(r"(?:boot/(?:vmlinuz|vmlinux|config)-[^/]+|(?:usr/)?(lib/modules/[^/]+/.+))")


def unpack_kernel(package: Path, folder: Path) -> None:
    """Unpacks what `package` (a .deb) has of a kernel into `folder`, which is there and empty.

    LabError when the package is damaged or holds what no kernel package has.
    """
    failure = ""
    # Leaving early closes the pipe, which ends dpkg-deb.
    with (
        tempfile.TemporaryFile() as errors,
        start(["dpkg-deb", "--fsys-tarfile", package], errors) as process,
    ):
        assert process.stdout is not None
        try:
            with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
                _unpack(archive, package.name, folder)
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
    # Debian 13 ships lib/modules below usr/.
    match = _WANTED.fullmatch("/".join(parts))
    return None if match is None else match.group(1) or match.group(0)
