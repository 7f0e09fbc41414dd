# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the headers of rpm packages, version 4: where the files begin, and whether all is there.

The format is that of rpm's manual ("RPM package format"): a lead, a header of signatures, the
header, and a packed cpio archive.
"""

import hashlib
import os
import struct
from io import BufferedReader

from kdelta.kernels.packages.packed import PackedError
from kdelta.spec.limits import RPM_HEADER_BYTES, RPM_TAGS

MAGIC = b"\xed\xab\xee\xdb"
_LEAD_BYTES = 96
_HEADER = b"\x8e\xad\xe8\x01"

# rpm's own limits (lib/header_internal.h): tags of a header, bytes of what they hold.

_HEADER_SHA256 = 273
_PAYLOAD_FORMAT, _PAYLOAD_DIGEST, _PAYLOAD_ALGORITHM = 1124, 5092, 5093
_SHA256 = 8
_INT32, _STRING, _STRINGS = 4, 6, 8


def payload_offset(file: BufferedReader) -> int:
    """Where the packed cpio archive of an rpm package begins. PackedError for a package that is
    damaged, as its own hashes show, or that has no such archive.
    """
    file.seek(0)
    lead = _exactly(file, _LEAD_BYTES)
    if lead[6:8] == b"\0\1":
        raise PackedError("it is a source package")
    signatures, _ = _header(file)
    file.seek(-file.tell() % 8, os.SEEK_CUR)
    header, content = _header(file)
    digest = signatures.get(_HEADER_SHA256)
    if digest and digest != hashlib.sha256(content).hexdigest():
        raise PackedError("the hash of its header differs")
    if (kind := header.get(_PAYLOAD_FORMAT, "cpio")) != "cpio":
        raise PackedError(f"its files are in the format {kind}, which is not understood")
    start = file.tell()
    wanted = header.get(_PAYLOAD_DIGEST)
    is_sha256 = header.get(_PAYLOAD_ALGORITHM, str(_SHA256)) == str(_SHA256)
    if wanted and is_sha256 and wanted != hashlib.file_digest(file, "sha256").hexdigest():
        raise PackedError("the hash of its files differs, as when it is cut off")
    return start


def _header(file: BufferedReader) -> tuple[dict[int, str], bytes]:
    """The texts and numbers of a header by tag, of lists the first; and the header's bytes."""
    head = _exactly(file, 16)
    count, size = struct.unpack(">II", head[8:])
    if head[:4] != _HEADER or count > RPM_TAGS or size > RPM_HEADER_BYTES:
        raise PackedError("it has no header of rpm's where there must be one")
    index, store = _exactly(file, 16 * count), _exactly(file, size)
    found: dict[int, str] = {}
    for tag, kind, at, _ in struct.iter_unpack(">IIII", index):
        if kind in (_STRING, _STRINGS) and at < size:
            found[tag] = store[at : store.find(b"\0", at)].decode("utf-8", "replace")
        elif kind == _INT32 and at + 4 <= size:
            found[tag] = str(struct.unpack_from(">I", store, at)[0])
    return found, head + index + store


def _exactly(file: BufferedReader, count: int) -> bytes:
    content = file.read(count)
    if len(content) != count:
        raise PackedError("it is cut off")
    return content
