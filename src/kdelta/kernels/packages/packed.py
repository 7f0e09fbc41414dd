# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels that are packed: what is in an image that unpacks itself, and images in gzip files."""

import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

from kdelta.spec.limits import PACKED_IMAGE_BYTES as MAX_BYTES

_STEP_BYTES = 1 << 20
_MAX_MEMORY_BYTES = 256 << 20
"""Of an unpacker, which would allocate what a header claims, up to 4 GiB; kernels need 64 MiB."""


class _Unpacker(Protocol):
    def decompress(self, data: bytes, max_bytes: int, /) -> bytes: ...


# By how the packed data begins: scripts/Makefile.lib of the kernel has the commands that pack.
_METHODS: dict[bytes, Callable[[], _Unpacker]] = {
    b"\x1f\x8b\x08": lambda: zlib.decompressobj(wbits=31),
    b"\xfd7zXZ\0": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, _MAX_MEMORY_BYTES),
    b"\x5d\0\0": lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE, _MAX_MEMORY_BYTES),
}
METHODS = "gzip, xz or lzma"
"""Those that are understood, in words."""


class PackedError(ValueError):
    """What was to be unpacked is damaged, cut off or too large."""


def payloads(image: bytes) -> Iterator[bytes]:
    """All that can be unpacked from within an image, the largest part of it for one that is cut off
    or followed by something else. What looks packed and is not, is left out.
    """
    for magic, method in _METHODS.items():
        for found in re.finditer(re.escape(magic), image):
            content, _ = _unpack(image[found.start() :], method())
            if content:
                yield content


def gunzip(packed: bytes) -> bytes:
    """What a gzip file holds; PackedError when it is damaged."""
    content, failed = _unpack(packed, zlib.decompressobj(wbits=31))
    if failed:
        raise PackedError(failed)
    return content


def _unpack(packed: bytes, unpacker: _Unpacker) -> tuple[bytes, str]:
    """What could be unpacked, and why not more."""
    parts, total_bytes = [], 0
    try:
        for at in range(0, len(packed), _STEP_BYTES):
            # One step of zeros can unpack to gigabytes; what is beyond the limit is not needed.
            left = MAX_BYTES - total_bytes + 1
            part = unpacker.decompress(packed[at : at + _STEP_BYTES], left)
            total_bytes += len(part)
            if total_bytes > MAX_BYTES:
                return b"", "too large for a kernel"
            parts.append(part)
            if getattr(unpacker, "eof", False):
                return b"".join(parts), ""
    except (zlib.error, lzma.LZMAError, EOFError) as error:
        return b"".join(parts), str(error)
    return b"".join(parts), "cut off"
