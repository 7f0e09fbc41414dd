# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads archives of any origin from the first to the last byte: tar, cpio and rpm, packed or not.

Nothing is written here. What an archive claims is not believed: headers, names and all that it
unpacks to have limits, and what is cut off is an error.
"""

import bz2
import contextlib
import gzip
import os
import stat
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol, cast

from kdelta.host.command import piped
from kdelta.kernels.packages.packed import PackedError
from kdelta.kernels.packages.rpm import MAGIC as RPM
from kdelta.kernels.packages.rpm import payload_offset
from kdelta.spec.limits import ARCHIVE_BYTES as MAX_BYTES
from kdelta.spec.limits import HEADER_BYTES, NAME_BYTES

_STEP_BYTES = 1 << 20

_PROGRAMS = {
    b"\x28\xb5\x2f\xfd": ("zstd", "-dcq"),
    b"\xfd7zXZ\0": ("xz", "-dcq", "--memlimit-decompress=1GiB"),
}
_CPIO = (b"070701", b"070702")
_BLOCK_BYTES = 4


class ArchiveMember(NamedTuple):
    """One entry: its name as the archive has it, how long it claims to be, whether it is a regular
    file, and what opens that. It can be opened until the next one is asked for.
    """

    name: str
    bytes: int
    is_file: bool
    open: Callable[[], "Stream"]


class Stream(Protocol):
    """What can be read once, from the beginning."""

    def read(self, count: int = ..., /) -> bytes: ...


class Counted:
    """A stream that is an error once it has given more than archives may."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._bytes = 0

    def read(self, count: int = -1) -> bytes:
        try:
            content = self._stream.read(count)
        except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
            raise PackedError(getattr(error, "strerror", None) or str(error)) from error
        self._bytes += len(content)
        if self._bytes > MAX_BYTES:
            raise PackedError(f"it unpacks to more than {MAX_BYTES >> 30} GiB")
        return content


@contextlib.contextmanager
def unpacked(path: Path, start: int = 0) -> Iterator[Stream]:
    """What a file holds from there on, unpacked where it is gzip, bzip2, xz or zstd; PackedError,
    at the end of the body at the latest, when that is damaged.
    """
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(path.open("rb", buffering=0))
        head = os.pread(file.fileno(), 8, start)
        file.seek(start)
        stream: Stream
        if program := next((one for magic, one in _PROGRAMS.items() if head.startswith(magic)), ()):
            stream = stack.enter_context(piped(program, PackedError, file))
        elif head.startswith(b"\x1f\x8b"):
            stream = stack.enter_context(gzip.GzipFile(fileobj=file))
        elif head.startswith(b"BZh"):
            stream = stack.enter_context(bz2.BZ2File(file))
        else:
            stream = file
        yield Counted(stream)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Iterator[ArchiveMember]]:
    """The entries of an archive, each to be read before the next. PackedError, at the end of the
    body at the latest, for what is no archive or is damaged.
    """
    with path.open("rb") as file:
        start = payload_offset(file) if file.read(len(RPM)) == RPM else 0
    with unpacked(path, start) as stream:
        head = stream.read(len(_CPIO[0]))
        rest = _Joined(head, stream)
        yield _cpio(rest) if head in _CPIO else tar_members(rest)
        while stream.read(_STEP_BYTES):
            pass


class _Joined:
    """A stream whose beginning was read already."""

    def __init__(self, head: bytes, stream: Stream) -> None:
        self._head = head
        self._stream = stream

    def read(self, count: int = -1) -> bytes:
        head, self._head = self._head[:count], self._head[count:]
        return head or self._stream.read(count)


class _TarInfo(tarfile.TarInfo):
    """An entry of a tar archive whose extended headers, which are read whole, have a limit."""

    # With every Python; frombuf() is not called since Debian's 3.11.2-6+deb12u8.
    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        if self.size > HEADER_BYTES and self.type in _EXTENDED:
            raise PackedError("it has a header that is too large")
        found: tarfile.TarInfo = super()._proc_member(archive)  # type: ignore[misc]
        return found


_EXTENDED = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)


def tar_members(stream: Stream) -> Iterator[ArchiveMember]:
    """Yield the entries of a tar archive that is not packed; PackedError when it is damaged."""
    try:
        with tarfile.open(fileobj=stream, mode="r|", tarinfo=_TarInfo) as archive:  # type: ignore[call-overload]
            for one in archive:

                def content(one: tarfile.TarInfo = one) -> Stream:
                    found = archive.extractfile(one)
                    assert found is not None
                    return Counted(cast(Stream, found))

                # Sparse files claim what they do not have; no package of a kernel has one.
                is_file = one.isreg() and not one.issparse()
                yield ArchiveMember(one.name, one.size, is_file, content)
    # tarfile lets out what int() says of a damaged extended header.
    except (tarfile.TarError, ValueError) as error:
        raise PackedError(str(error)) from error


class _Body:
    """What a cpio archive has of one file."""

    def __init__(self, stream: Stream, count: int) -> None:
        self._stream = stream
        self._left = count

    def read(self, count: int = -1) -> bytes:
        wanted = self._left if count < 0 else min(count, self._left)
        content = self._stream.read(wanted) if wanted else b""
        if wanted and not content:
            raise PackedError("it is cut off")
        self._left -= len(content)
        return content


def _cpio(stream: Stream) -> Iterator[ArchiveMember]:
    """Reads the format "newc" of cpio(5), in which rpm and initramfs have their files."""
    while True:
        head = _exactly(stream, 110)
        try:
            fields = [int(head[at : at + 8], 16) for at in range(6, 110, 8)]
        except ValueError:
            fields = []
        if head[:6] not in _CPIO or not fields:
            raise PackedError("it has no header of cpio's where there must be one")
        mode, size, name_bytes = fields[1], fields[6], fields[11]
        if not 0 < name_bytes <= NAME_BYTES:
            raise PackedError("it has a name that is too long")
        name = _exactly(stream, name_bytes)[:-1].decode("utf-8", "replace")
        _exactly(stream, -(110 + name_bytes) % _BLOCK_BYTES)
        if name == "TRAILER!!!":
            return
        body = _Body(stream, size)
        yield ArchiveMember(name, size, stat.S_ISREG(mode), lambda body=body: body)  # type: ignore[misc]
        while body.read(_STEP_BYTES):
            pass
        _exactly(stream, -size % _BLOCK_BYTES)


def _exactly(stream: Stream, count: int) -> bytes:
    parts = b""
    while len(parts) < count:
        if not (part := stream.read(count - len(parts))):
            raise PackedError("it is cut off")
        parts += part
    return parts
