# SPDX-License-Identifier: GPL-2.0-or-later
"""What tells whether a snapshot is as it was taken."""

import json
import os
import random
from pathlib import Path

import pytest

from kdelta.machines.snapshots import RECORD, _checksum, snapshot_damage

BLOCK_BYTES = 4096
PLACES = (0, 3, 64, 65, 250)


def written(path: Path, *, zeros: bool) -> Path:
    """Write a memory of 1 MiB with data in some blocks, and zeros or holes in the others."""
    chance = random.Random(1)
    with path.open("wb") as file:
        file.truncate(1 << 20)
        if zeros:
            file.write(bytes(1 << 20))
        for place in PLACES:
            file.seek(place * BLOCK_BYTES)
            file.write(chance.randbytes(BLOCK_BYTES))
    return path


def test_checksum_zeros_instead_of_holes_is_equal(tmp_path: Path) -> None:
    holes, zeros = (written(tmp_path / str(zeros), zeros=zeros) for zeros in (False, True))
    assert holes.stat().st_blocks < zeros.stat().st_blocks
    assert _checksum(holes) == _checksum(zeros)


@pytest.mark.parametrize("place", [0, 70_000, 3 * BLOCK_BYTES, (1 << 20) - 1])
def test_checksum_one_bit_differs(place: int, tmp_path: Path) -> None:
    path = written(tmp_path / "ram", zeros=False)
    before = _checksum(path)
    with path.open("r+b") as file:
        byte = os.pread(file.fileno(), 1, place)[0]
        os.pwrite(file.fileno(), bytes([byte ^ 1]), place)
    assert _checksum(path) != before


def test_checksum_blocks_exchanged_differs(tmp_path: Path) -> None:
    path = written(tmp_path / "ram", zeros=False)
    before, data = _checksum(path), path.read_bytes()
    first, other = (data[at * BLOCK_BYTES :][:65536] for at in (0, 64))
    path.write_bytes(
        other + data[65536 : 64 * BLOCK_BYTES] + first + data[64 * BLOCK_BYTES + 65536 :]
    )
    assert len(path.read_bytes()) == len(data)
    assert _checksum(path) != before


def test_checksum_longer_by_a_hole_differs(tmp_path: Path) -> None:
    path = written(tmp_path / "ram", zeros=False)
    before = _checksum(path)
    os.truncate(path, (1 << 20) + 1)
    assert _checksum(path) != before


def test_damage_record_of_an_earlier_version(tmp_path: Path) -> None:
    """Its checksums are those of a file with zeros that are no holes, made by that version."""
    folder = tmp_path / "key"
    folder.mkdir()
    for name in ("state", "boot", "symbols"):
        (folder / name).write_bytes(name.encode())
    (folder / "ram").write_bytes(b"a" * 70_000 + bytes(70_000))
    checksums = {"ram": 98411649, "state": 117209024, "boot": 3902876998, "symbols": 1803253811}
    (folder / RECORD).write_text(json.dumps({"key": "key", "checksums": checksums}))
    assert snapshot_damage(folder) is None
    (folder / "ram").write_bytes(b"a" * 70_000 + bytes(69_999) + b"\1")
    assert snapshot_damage(folder) == "ram is not what was taken"
