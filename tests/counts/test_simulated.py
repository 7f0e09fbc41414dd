# SPDX-License-Identifier: GPL-2.0-or-later
"""Misses that the plugin counted, from its file and as an attachment."""

import struct
from pathlib import Path

import pytest

from kdelta.counts.simulated import (
    SimulatedMisses,
    decode_simulated,
    encode_simulated,
    read_simulated,
)
from kdelta.cpus.model import Cache
from kdelta.spec.errors import LabError

L1I = Cache(64, 8, 64)


def chunk(tag: bytes, payload: bytes) -> bytes:
    return struct.pack("<4sIQ", tag, 0, len(payload)) + payload


def misses(name: str, total: tuple[int, int, int], *rows: tuple[int, int, int, int]) -> bytes:
    head = struct.pack("<4I3Q", 64, 8, 64, len(name), *total) + name.encode()
    return chunk(b"MISS", head + b"".join(struct.pack("<4Q", *row) for row in rows))


def read(path: Path, *chunks: bytes) -> tuple[SimulatedMisses, ...]:
    (path / "counts").write_bytes(b"".join(chunks) + chunk(b"END ", b""))
    return read_simulated(path / "counts")


def test_misses_by_context_and_place(tmp_path: Path) -> None:
    # Rows of one address are one place.
    rows = ((0x1000, 5, 1, 0), (0x2000, 0, 1, 0), (0x1000, 2, 0, 0))
    (found,) = read(tmp_path, misses("stat", (7, 2, 0), *rows))
    places = {0x1000: (7, 1, 0), 0x2000: (0, 1, 0)}
    assert found == SimulatedMisses("stat", L1I, (7, 2, 0), places)
    assert found.total() == 9
    assert decode_simulated(encode_simulated([found])) == (found,)


def test_regions_of_one_name_are_one(tmp_path: Path) -> None:
    both, other = read(
        tmp_path,
        misses("stat", (5, 0, 0), (0x1000, 5, 0, 0)),
        misses("open", (0, 0, 0)),
        misses("stat", (3, 1, 0), (0x1000, 2, 1, 0), (0x3000, 1, 0, 0)),
    )
    assert both == SimulatedMisses("stat", L1I, (8, 1, 0), {0x1000: (7, 1, 0), 0x3000: (1, 0, 0)})
    assert other.region == "open"


def test_misses_that_do_not_add_up(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="own misses add up to 5, not 6"):
        read(tmp_path, misses("stat", (6, 0, 0), (0x1000, 5, 0, 0)))


@pytest.mark.parametrize("cut", [4, 60, -5])
def test_a_chunk_that_is_damaged(tmp_path: Path, cut: int) -> None:
    payload = misses("stat", (5, 0, 0), (0x1000, 5, 0, 0))[16:][:cut]
    with pytest.raises(LabError, match="damaged"):
        read(tmp_path, chunk(b"MISS", payload))


def test_a_file_without_misses_and_one_that_is_cut_short(tmp_path: Path) -> None:
    assert read(tmp_path) == ()
    (tmp_path / "counts").write_bytes(misses("stat", (0, 0, 0)))
    with pytest.raises(LabError, match="cut short"):
        read_simulated(tmp_path / "counts")


@pytest.mark.parametrize("text", [b"", b"{}", b'[["stat"]]'])
def test_an_attachment_that_is_damaged(text: bytes) -> None:
    with pytest.raises(LabError, match="cannot be read"):
        decode_simulated(text)
