# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels within programs for EFI firmware: zboot images, and unified kernel images."""

import mmap
import struct

from kdelta.kernels.packages.packed import PackedError, unpacked_image

_ZBOOT = b"MZ\0\0zimg"
# drivers/firmware/efi/libstub/zboot-header.S: offset and size of what is packed, then by which
# method, in a text of at most 32 bytes.
_PLACE, _METHOD = 8, slice(24, 56)
_NOT_PACKED = b"none"

# The PE format: where its header's offset is, and of that header and of a section's, by offset.
_PE_AT, _PE = 0x3C, b"PE\0\0"
_SECTIONS, _OPTIONAL_BYTES, _HEADER_BYTES, _SECTION_BYTES = 6, 20, 24, 40
_LINUX = b".linux\0\0"


def inner_image(image: bytes | mmap.mmap) -> bytes | None:
    """The image in one for the firmware; None if it is none. PackedError for a damaged one."""
    if image[: len(_ZBOOT)] == _ZBOOT:
        return _of_zboot(image)
    return _linux_section(image) if image[:2] == b"MZ" else None


def _of_zboot(image: bytes | mmap.mmap) -> bytes:
    try:
        start, count = struct.unpack_from("<II", image, _PLACE)
    except struct.error as error:
        raise PackedError("cut off") from error
    packed = _part(image, start, count)
    method = image[_METHOD].split(b"\0")[0]
    try:
        return packed if method == _NOT_PACKED else unpacked_image(packed)
    except PackedError as error:
        raise PackedError(
            f"{error}; its header says {method.decode('ascii', 'replace')}"
        ) from error


def _linux_section(image: bytes | mmap.mmap) -> bytes | None:
    """The section of a unified kernel image that has the kernel."""
    try:
        (header,) = struct.unpack_from("<I", image, _PE_AT)
        if image[header : header + len(_PE)] != _PE:
            return None
        (count,) = struct.unpack_from("<H", image, header + _SECTIONS)
        (optional_bytes,) = struct.unpack_from("<H", image, header + _OPTIONAL_BYTES)
        first = header + _HEADER_BYTES + optional_bytes
        for at in range(first, first + count * _SECTION_BYTES, _SECTION_BYTES):
            name, size, _, stored, start = struct.unpack_from("<8sIIII", image, at)
            if name == _LINUX:
                # What is stored is padded.
                return _part(image, start, min(size, stored))
    except struct.error as error:
        raise PackedError("cut off") from error
    return None


def _part(image: bytes | mmap.mmap, start: int, count: int) -> bytes:
    part = image[start : start + count]
    if len(part) < count or start == 0:
        raise PackedError("cut off")
    return part
