# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels that are packed: in an image that unpacks itself, or to be unpacked before the boot."""

import lzma
import re
import tempfile
import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

from kdelta.host.command import piped
from kdelta.spec.limits import PACKED_IMAGE_BYTES as MAX_BYTES
from kdelta.spec.limits import UNPACKER_MEMORY_BYTES

_STEP_BYTES = 1 << 20


class _Unpacker(Protocol):
    def decompress(self, data: bytes, max_bytes: int, /) -> bytes: ...


# By how the packed data begins: scripts/Makefile.lib of the kernel has the commands that pack.
_METHODS: dict[bytes, Callable[[], _Unpacker]] = {
    b"\x1f\x8b\x08": lambda: zlib.decompressobj(wbits=31),
    b"\xfd7zXZ\0": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, UNPACKER_MEMORY_BYTES),
    b"\x5d\0\0": lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE, UNPACKER_MEMORY_BYTES),
}
ZSTD = b"\x28\xb5\x2f\xfd"
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


def unpacked_image(packed: bytes) -> bytes:
    """What gzip, xz, lzma or zstd packed; PackedError for what is damaged or packed otherwise."""
    if packed.startswith(ZSTD):
        return _by_zstd(packed)
    method = next((one for magic, one in _METHODS.items() if packed.startswith(magic)), None)
    if method is None:
        raise PackedError("packed in a way that is not understood")
    content, failed = _unpack(packed, method())
    if failed:
        raise PackedError(failed)
    return content


def _by_zstd(packed: bytes) -> bytes:
    with tempfile.TemporaryFile() as file:
        file.write(packed)
        file.seek(0)
        with piped(("zstd", "-dcq"), PackedError, file) as stream:
            content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise PackedError("too large for a kernel")
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
