# SPDX-License-Identifier: GPL-2.0-or-later
"""The chunks of the file that the plugin writes (docs/formats.md): tag, length, payload."""

import functools
import os
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from kdelta.host.files import FileState
from kdelta.spec.errors import LabError

HEAD = struct.Struct("<4sIQ")
_FACTS = {
    *("hello", "arguments", "environment", "kernel-log", "cpuinfo", "vulnerabilities", "vdso"),
    *("kallsyms", "modules"),
}
"""What the agent sends once, before it starts a program, which may send anything."""


def read_chunks(path: Path) -> Iterator[tuple[bytes, memoryview]]:
    """Yield each chunk's tag and payload, in order; those of a cut file up to where it is whole."""
    view = memoryview(path.read_bytes())
    at = 0
    while at + HEAD.size <= len(view):
        tag, _, size = HEAD.unpack_from(view, at)
        at += HEAD.size
        if at + size > len(view):
            return
        yield tag, view[at : at + size]
        at += size


def chunk_payloads(path: Path, wanted: bytes) -> Iterator[bytes]:
    """The payloads of the chunks with that tag; the others are not read from the file."""
    with path.open("rb", buffering=0) as file:
        size_of_file = os.fstat(file.fileno()).st_size
        at = 0
        while len(head := os.pread(file.fileno(), HEAD.size, at)) == HEAD.size:
            tag, _, size = HEAD.unpack(head)
            at += HEAD.size
            if at + size > size_of_file:
                return
            if tag == wanted:
                yield os.pread(file.fileno(), size, at)
            at += size


def is_whole_recording(path: Path) -> bool:
    """Whether the plugin wrote its last chunk: otherwise QEMU died or the disk filled up."""
    return next(chunk_payloads(path, b"END "), None) is not None


def read_messages(path: Path) -> dict[str, bytes]:
    """Return what the guest sent: payload by type; those of one type joined, in order, but of the
    agent's facts the first. Nothing, where the file is not there.
    """
    messages: dict[str, list[bytes]] = {}
    for payload in chunk_payloads(path, b"MSG ") if path.exists() else ():
        kind, _, rest = payload.partition(b"\n")
        name = kind.decode("ascii", "replace")
        if name not in _FACTS or name not in messages:
            messages.setdefault(name, []).append(rest)
    return {name: b"".join(parts) for name, parts in messages.items()}


def merged_messages(*parts: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return what a guest sent on its way, part by part: of a type the last part's message, but of
    the agent's facts the first.
    """
    merged: dict[str, bytes] = {}
    for part in parts:
        merged |= {name: text for name, text in part.items() if name not in _FACTS & merged.keys()}
    return merged


def kept_messages(path: Path) -> Mapping[str, bytes]:
    """`read_messages` of a file that stays, such as a snapshot's, kept in memory."""
    return _kept_messages(FileState.of(path))


@functools.lru_cache(maxsize=8)
def _kept_messages(file: FileState) -> Mapping[str, bytes]:
    return MappingProxyType(read_messages(file.path))


def require_complete(path: Path) -> None:
    """LabError when the file is cut short or not there at all."""
    if not path.exists() or not is_whole_recording(path):
        raise LabError(
            f"the counts in {path} are cut short", "look whether the disk is full, then run again"
        )
