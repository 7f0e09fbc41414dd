# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes cpio archives ("newc") that are the same, byte for byte, for the same entries."""

import stat
from collections.abc import Iterable
from pathlib import PurePosixPath

import msgspec

from kdelta.spec.errors import UserError

TRAILER = "TRAILER!!!"
# Documentation/driver-api/early-userspace/buffer-format.rst: all numbers have eight digits.
MAX_FILE_BYTES = 0xFFFFFFFF


class Entry(msgspec.Struct, frozen=True):
    """One file, folder or device. `path` is relative; `mode` has the type in it, as in stat."""

    path: str
    mode: int
    content: bytes = b""
    device: tuple[int, int] = (0, 0)


def file(path: str, content: bytes, *, executable: bool = False) -> Entry:
    """A regular file."""
    return Entry(path, stat.S_IFREG | (0o755 if executable else 0o644), content)


def folder(path: str, permissions: int = 0o755) -> Entry:
    """A folder."""
    return Entry(path, stat.S_IFDIR | permissions)


def archive(entries: Iterable[Entry]) -> bytes:
    """The archive of `entries` by path, with the folders above them that are not named.

    Owner root, time 0, inode numbers counted up. ValueError if a path occurs twice.
    """
    by_path: dict[str, Entry] = {}
    for entry in entries:
        if entry.path in by_path:
            raise ValueError(f"{entry.path} occurs twice")
        by_path[entry.path] = entry
    for path in list(by_path):
        for above in PurePosixPath(path).parents:
            if str(above) != ".":
                by_path.setdefault(str(above), folder(str(above)))
    # By parts, so that a folder always comes before what is in it.
    ordered = sorted(by_path.values(), key=lambda entry: PurePosixPath(entry.path).parts)
    parts = [_record(number, entry) for number, entry in enumerate(ordered, start=1)]
    return b"".join([*parts, _record(0, Entry(TRAILER, 0))])


def _record(inode: int, entry: Entry) -> bytes:
    name = entry.path.encode() + b"\0"
    if len(entry.content) > MAX_FILE_BYTES:
        raise UserError(f"{entry.path} is too large for a guest's archive")
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    fields = (inode, entry.mode, 0, 0, links, 0, len(entry.content), 0, 0, *entry.device)
    header = b"070701" + b"".join(b"%08x" % field for field in (*fields, len(name), 0))
    return _padded(header + name) + _padded(entry.content)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
