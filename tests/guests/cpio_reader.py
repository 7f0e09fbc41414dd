# SPDX-License-Identifier: GPL-2.0-or-later
"""A reader of cpio archives."""

import io

FIELDS = 13


def read(data: bytes) -> list[tuple[str, list[int], bytes]]:
    """A second reading of the format: name, the header's numbers, content."""
    stream = io.BytesIO(data)
    found: list[tuple[str, list[int], bytes]] = []
    while True:
        header = stream.read(110)
        assert header[:6] == b"070701"
        numbers = [int(header[6 + 8 * n : 14 + 8 * n], 16) for n in range(FIELDS)]
        name = stream.read(numbers[11])
        stream.seek(-stream.tell() % 4, io.SEEK_CUR)
        content = stream.read(numbers[6])
        stream.seek(-stream.tell() % 4, io.SEEK_CUR)
        if name == b"TRAILER!!!\0":
            assert stream.read() == b""
            return found
        found.append((name[:-1].decode(), numbers, content))
