# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of unpacked packages: they are started by their own loader, with their own libraries."""

from collections.abc import Iterator
from pathlib import Path

_LIBRARIES = ("usr/lib/*-linux-gnu*", "lib/*-linux-gnu*", "usr/lib64", "lib64")


def library_folders(folder: Path) -> list[Path]:
    """The folders with libraries of packages that were unpacked there."""
    found = (one for place in _LIBRARIES for one in sorted(folder.glob(place)))
    return list({one.resolve(): one for one in found}.values())


def loading(folder: Path) -> Iterator[str]:
    """How a command line begins that starts a program of these packages. Nothing where they have
    no loader.
    """
    libraries = library_folders(folder)
    loader = next((one for place in libraries for one in place.glob("ld-linux*.so.*")), None)
    if loader is not None:
        yield from (str(loader), "--library-path", ":".join(map(str, libraries)))
