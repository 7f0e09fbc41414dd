# SPDX-License-Identifier: GPL-2.0-or-later
"""Small files of the cache that answer a question, sealed by a hash over name and content: an
answer that is damaged, or is that of another question, is none.
"""

import contextlib
import hashlib
from pathlib import Path
from typing import TypeVar

import msgspec

from kdelta.host.files import read_regular, write_atomic

T = TypeVar("T")

ENDING = ".sealed"
_SEAL_BYTES = 64


def write_sealed(path: Path, content: bytes) -> None:
    """Writes a file as `write_atomic` does, with its seal as the last line. ENDING is added to its
    name, so that files of older versions are not taken for damaged.
    """
    write_atomic(_place(path), b"%b\n%b\n" % (content, _seal(path, content)))


def read_sealed(path: Path) -> bytes | None:
    """Return what was written; None if there is no such file, or not as it was written."""
    with contextlib.suppress(OSError):
        found = read_regular(_place(path))
        content, seal = found[: -_SEAL_BYTES - 2], found[-_SEAL_BYTES - 1 : -1]
        if found == b"%b\n%b\n" % (content, seal) and seal == _seal(path, content):
            return content
    return None


def write_record(path: Path, record: msgspec.Struct) -> None:
    """Writes a record as JSON, sealed."""
    write_sealed(path, msgspec.json.format(msgspec.json.encode(record)))


def read_record(path: Path, kind: type[T]) -> T | None:
    """The record; None if it cannot be read, is damaged or of another kind."""
    if (content := read_sealed(path)) is not None:
        with contextlib.suppress(ValueError, RecursionError):
            return msgspec.json.decode(content, type=kind)
    return None


def sealed_damage(place: Path) -> str | None:
    """Return what is wrong with the file of an answer; None if nothing is."""
    whole = read_sealed(place.with_name(place.name.removesuffix(ENDING))) is not None
    return None if whole else "it is not what was written"


def is_sealed(place: Path) -> bool:
    """Whether that is the file of an answer; others are of an older version, and not used."""
    return place.name.endswith(ENDING)


def _place(path: Path) -> Path:
    return path.with_name(path.name + ENDING)


def _seal(path: Path, content: bytes) -> bytes:
    return hashlib.sha256(b"%b\0%b" % (path.name.encode(), content)).hexdigest().encode()
