# SPDX-License-Identifier: GPL-2.0-or-later
"""A file of the host that has the same path in the guest."""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from kdelta.guests.cpio import Entry
from kdelta.host.files import FileState, sha256_state, user_errors
from kdelta.spec.errors import UserError


class HostFile(msgspec.Struct, frozen=True):
    """A file, folder or symbolic link of the host, which has the same path in the guest.

    mode         as in stat
    modified_ns  time of modification; 0 of folders that are only on the way to others
    target       where a link leads
    size_bytes   of a file
    content      whether a file's content is carried; it reads as zeros where not
    """

    path: str
    mode: int
    modified_ns: int = 0
    target: str = ""
    size_bytes: int = 0
    content: bool = False

    @property
    def word(self) -> str:
        """What of it is carried."""
        if stat.S_ISREG(self.mode):
            return "content" if self.content else "size"
        return "folder" if stat.S_ISDIR(self.mode) else "link"

    @property
    def is_hole(self) -> bool:
        """Return whether a program would read zeros in its place."""
        return stat.S_ISREG(self.mode) and self.size_bytes > 0 and not self.content

    def facts(self) -> tuple[object, ...]:
        """What makes it the same for a guest."""
        content = sha256_state(FileState.of(Path(self.path))) if self.content else ""
        return self.path, self.mode, self.modified_ns, self.target, self.size_bytes, content

    def entry(self) -> Entry:
        """Return it as in an archive; UserError if it cannot be read."""
        content, hole = os.fsencode(self.target), 0
        if self.content:
            with open_host_file(self.path) as file:
                content = read_same(file, self.path, self.modified_ns)
        elif self.is_hole:
            hole = self.size_bytes
        return Entry(
            self.path.lstrip("/"), self.mode, content, modified_ns=self.modified_ns, hole_bytes=hole
        )


@contextlib.contextmanager
def open_host_file(path: str) -> Iterator[BinaryIO]:
    """A file, to be read; UserError if that is not possible. A pipe that came in its place is not
    waited for.
    """
    with user_errors(path), os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise UserError(f"{path} cannot be read: it is no file any more")
        yield file


def read_same(file: BinaryIO, path: str, modified_ns: int) -> bytes:
    """Return the content of a file that was last modified then; UserError if that is not so any
    more: all runs of a command get the same files.
    """
    content = file.read()
    state = os.fstat(file.fileno())
    if (state.st_mtime_ns, state.st_size) != (modified_ns, len(content)):
        raise UserError(
            f"{path} was changed while the program that reads it was measured",
            f"leave it alone until kdelta ends, or give a copy: --file COPY:{path}",
        )
    return content


def carried_bytes(files: Iterable[HostFile]) -> int:
    """The bytes of all contents."""
    return sum(one.size_bytes for one in files if one.content)
