# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes cpio archives ("newc") that are the same, byte for byte, for the same entries."""

import os
import stat
from collections.abc import Iterable
from pathlib import PurePosixPath

import msgspec

from kdelta.spec.errors import UserError

TRAILER = "TRAILER!!!"
# Documentation/driver-api/early-userspace/buffer-format.rst: all numbers have eight digits.
MAX_FILE_BYTES = 0xFFFFFFFF


class Entry(msgspec.Struct, frozen=True):
    """One file, folder, link or device.

    path         relative
    mode         with the type in it, as in stat
    content      of a link: where it leads
    device       numbers of a device
    modified_ns  time of modification; 0: none, the file gets that of unpacking
    hole_bytes   size of a file that is carried without its content
    """

    path: str
    mode: int
    content: bytes = b""
    device: tuple[int, int] = (0, 0)
    modified_ns: int = 0
    hole_bytes: int = 0


def file(path: str, content: bytes, *, executable: bool = False) -> Entry:
    """A regular file."""
    return Entry(path, stat.S_IFREG | (0o755 if executable else 0o644), content)


def folder(path: str, permissions: int = 0o755) -> Entry:
    """A folder."""
    return Entry(path, stat.S_IFDIR | permissions)


def archive(entries: Iterable[Entry]) -> bytes:
    """The archive of `entries` by path, with the folders above them that are not named. Folders
    with a time come once more at the end, since what is put into them changes it.

    Owner root, inode numbers counted up. ValueError if a path occurs twice.
    """
    by_path: dict[str, Entry] = {}
    for entry in entries:
        if entry.path in by_path:
            raise ValueError(f"{entry.path} occurs twice")
        by_path[entry.path] = entry
    above = {str(one) for path in by_path for one in PurePosixPath(path).parents} - {"."}
    by_path = {**{path: folder(path) for path in above}, **by_path}
    # By parts, so that a folder always comes before what is in it.
    ordered = sorted(by_path.values(), key=lambda entry: PurePosixPath(entry.path).parts)
    ordered += [one for one in ordered if stat.S_ISDIR(one.mode) and one.modified_ns]
    parts = [_record(number, entry) for number, entry in enumerate(ordered, start=1)]
    return b"".join([*parts, _record(0, Entry(TRAILER, 0))])


def _record(inode: int, entry: Entry) -> bytes:
    name = os.fsencode(entry.path) + b"\0"
    if len(entry.content) > MAX_FILE_BYTES:
        raise UserError(f"{entry.path} is too large for a guest's archive")
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    seconds, nanoseconds = divmod(max(0, entry.modified_ns), 1_000_000_000)
    # Two fields that mean nothing for files are kdelta's: native/agent/cpio.c reads them.
    of_file = divmod(entry.hole_bytes, 1 << 32) if stat.S_ISREG(entry.mode) else entry.device
    fields = (
        *(inode, entry.mode, 0, 0, links, min(seconds, MAX_FILE_BYTES), len(entry.content)),
        *(0, nanoseconds, *of_file),
    )
    header = b"070701" + b"".join(b"%08x" % field for field in (*fields, len(name), 0))
    return _padded(header + name) + _padded(entry.content)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
