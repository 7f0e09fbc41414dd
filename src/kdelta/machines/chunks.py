# SPDX-License-Identifier: GPL-2.0-or-later
"""The chunks of the file that the plugin writes (docs/formats.md): tag, length, payload."""

import struct
from collections.abc import Iterator
from pathlib import Path

from kdelta.spec.errors import LabError

_HEAD = struct.Struct("<4sIQ")


def read_chunks(path: Path) -> Iterator[tuple[bytes, memoryview]]:
    """Each chunk's tag and payload, in order. Stops quietly at a cut end: `is_complete` tells."""
    view = memoryview(path.read_bytes())
    at = 0
    while at + _HEAD.size <= len(view):
        tag, _, size = _HEAD.unpack_from(view, at)
        at += _HEAD.size
        if at + size > len(view):
            return
        yield tag, view[at : at + size]
        at += size


def is_complete(path: Path) -> bool:
    """Whether the plugin wrote its last chunk: otherwise QEMU died or the disk filled up."""
    return any(tag == b"END " for tag, _ in read_chunks(path))


def read_messages(path: Path) -> dict[str, bytes]:
    """What the guest sent: payload by type; those of one type joined, in order."""
    messages: dict[str, bytes] = {}
    for tag, payload in read_chunks(path):
        if tag == b"MSG ":
            kind, _, rest = bytes(payload).partition(b"\n")
            name = kind.decode("ascii", "replace")
            messages[name] = messages.get(name, b"") + rest
    return messages


def require_complete(path: Path) -> None:
    """LabError when the file is cut short or not there at all."""
    if not path.exists() or not is_complete(path):
        raise LabError(
            f"the counts in {path} are cut short",
            "look whether the disk is full, then run again",
        )
