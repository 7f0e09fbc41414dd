# SPDX-License-Identifier: GPL-2.0-or-later
"""Traces: the blob that keeps them, and the plugin's file, whole and damaged."""

import contextlib
import struct
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.counts.trace import (
    DATA,
    Trace,
    decode_traces,
    encode_traces,
    have_data,
)
from kdelta.counts.trace_file import read_traces
from kdelta.spec.errors import LabError

BASE = 0xFFFFFFFF81000000
OWN, INTERRUPTS = 0, 1


def trace(**changes: Any) -> Trace:
    """Blocks a b c; pieces "a b" and "c"; executed a b, c, a b, the second in an interrupt."""
    fields: dict[str, Any] = {
        "region": "open-close",
        "addresses": np.array([BASE, BASE + 16, BASE + 64], "<u8"),
        "sizes": np.array([16, 8, 4], "<u4"),
        "insns": np.array([5, 2, 1], "<u4"),
        "physical": None,
        "items": np.array([0, 1, 2], "<u4"),
        "starts": np.array([0, 2, 3], "<u8"),
        "sequence": np.array([0, 1, 0], "<u4"),
        "contexts": np.array([OWN, INTERRUPTS, OWN], "u1"),
        "truncated": False,
        "iterations": 2,
    }
    return Trace(**{**fields, **changes})


def with_data() -> Trace:
    return trace(
        physical=np.array([0x1000, 0x1010, 0x1040], "<u8"),
        items=np.array([0, DATA | 1, 2], "<u4"),
        data_virtual=np.array([64, 128], "<u8"),
        data_physical=np.array([0x40, 0x80], "<u8"),
        data_stores=np.array([False, True]),
    )


def test_how_often_blocks_were_executed() -> None:
    assert trace().executions().tolist() == [2, 2, 1]
    assert trace().executions(INTERRUPTS).tolist() == [0, 0, 1]
    assert trace().executions().sum() == 5
    assert trace().executed_insns() == 2 * (5 + 2) + 1
    assert trace().executed_insns(OWN) == 2 * (5 + 2)
    assert with_data().executions().tolist() == [2, 0, 1]


def test_equal_is_equal_in_every_element() -> None:
    assert trace() == trace()
    assert trace() != trace(contexts=np.array([OWN, OWN, OWN], "u1"))
    assert trace() != trace(iterations=3)
    assert trace() != with_data()


@pytest.mark.parametrize("kept", [trace(), with_data()])
def test_a_blob_and_back(kept: Trace) -> None:
    (back,) = decode_traces(encode_traces([kept]))
    assert back == kept
    assert not back.items.flags.writeable
    assert encode_traces([back]) == encode_traces([kept])


def test_traces_of_a_run_are_one_blob() -> None:
    both = (trace(), with_data())
    assert decode_traces(encode_traces(both)) == both
    assert decode_traces(encode_traces(())) == ()
    assert not have_data(encode_traces(both))
    assert have_data(encode_traces((with_data(), with_data())))


@given(st.integers(0, 10**6))
def test_a_blob_that_is_cut_off(where: int) -> None:
    blob = encode_traces([trace()])
    with pytest.raises(LabError, match="cannot be read"):
        decode_traces(blob[: where % len(blob)])


@given(st.integers(0, 10**6), st.integers(1, 255))
def test_a_blob_with_a_wrong_byte_is_no_other_trace(where: int, change: int) -> None:
    blob = bytearray(encode_traces([trace()]))
    blob[where % len(blob)] ^= change
    # Some bits of a compressed stream mean nothing: the last byte's padding, say.
    with contextlib.suppress(LabError):
        assert decode_traces(bytes(blob)) == (trace(),)


def test_a_wrong_byte_in_the_middle_is_reported() -> None:
    blob = bytearray(encode_traces([trace()]))
    blob[len(blob) // 2] ^= 0xFF
    with pytest.raises(LabError, match="cannot be read"):
        decode_traces(bytes(blob))


def test_a_blob_that_lies_about_data() -> None:
    blob = encode_traces([trace()])
    with pytest.raises(LabError, match="about data"):
        decode_traces(encode_traces([with_data()])[:8] + blob[8:])


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("items", np.array([0, 1, 3], "<u4"), "a block is missing"),
        ("items", np.array([0, 1, DATA], "<u4"), "a datum is missing"),
        ("starts", np.array([0, 2, 4], "<u8"), "do not cover"),
        ("starts", np.array([], "<u8"), "do not cover"),
        ("starts", np.array([0, 3, 3], "<u8"), "do not cover"),
        ("sequence", np.array([0, 2, 0], "<u4"), "a piece is missing"),
        ("contexts", np.array([0, 1], "u1"), "differ in length"),
        ("contexts", np.array([0, 1, 3], "u1"), "a context is unknown"),
        ("sizes", np.array([1], "<u4"), "differ in length"),
        ("physical", np.array([1], "<u8"), "differ in length"),
        ("data_virtual", np.array([1], "<u8"), "differ in length"),
    ],
)
def test_a_blob_that_refers_to_nothing(field: str, value: Any, said: str) -> None:
    with pytest.raises(LabError, match=said):
        decode_traces(encode_traces([trace(**{field: value})]))


# The plugin's file. Blocks have ids, here 7 (of two groups), 3, 5, 9 (silent), and 4 and 6, which
# were once cut out of 3. Units have ids of their own.

BLOCKS = {
    7: (BASE + 0x40, 12, 0),
    3: (BASE, 8, 0),
    9: (BASE + 8, 2, 1),
    5: (BASE, 6, 0),
    4: (BASE, 2, 0),
    6: (BASE + 2, 6, 0),
}
UNITS = {70: (BASE + 0x40, 12, 4), 30: (BASE, 8, 2), 50: (BASE, 6, 1)}


class Written(msgspec.Struct):
    """A region that begins in the middle of block 7, executes 3 twice, and ends at 5's start."""

    name: str = "open-close"
    marks: tuple[int, int, int, int] = (7, 1, 5, 0)
    pieces: tuple[tuple[int, ...], ...] = ((70, 30), (30, 50))
    sequence: tuple[int, ...] = (0, 1)
    contexts: tuple[int, ...] = (0, 0)
    flags: int = 0
    line_bytes: int = 64
    lines: tuple[tuple[int, int], ...] = ()
    entered: dict[tuple[int, int, int], int] = msgspec.field(
        default_factory=lambda: {(3, 0, 0): 2, (7, 1, 0): 1, (9, 0, 0): 50}
    )

    def region(self) -> bytes:
        name = self.name.encode()
        head = struct.pack("<I", len(name)) + name + struct.pack("<QQ4Q4Q", 0, 1, *range(8))
        rows = [
            struct.pack("<II4Q", block, group | context << 16, entered, 0, 0, 0)
            for (block, group, context), entered in self.entered.items()
        ]
        return head + b"".join(rows)

    def trace(self) -> bytes:
        name = self.name.encode()
        items = [item for piece in self.pieces for item in piece]
        counts = (
            1,
            len(BLOCKS),
            len(UNITS),
            len(items),
            len(self.pieces),
            len(self.sequence),
            len(self.lines),
        )

        flags = self.flags | self.line_bytes << 8
        head = struct.pack("<6I7Q", flags, *self.marks, len(name), *counts) + name
        blocks = [struct.pack("<Q4I", at, id_, *rest, 0) for id_, (at, *rest) in BLOCKS.items()]
        units = [
            struct.pack("<3Q3I", at, 99 - id_, at - BASE, id_, *rest)
            for id_, (at, *rest) in UNITS.items()
        ]
        words = [*items, *map(len, self.pieces), *self.sequence]
        columns = (head, *blocks, *units, struct.pack(f"<{len(words)}I", *words))
        lines = (struct.pack("<2Q", *line) for line in self.lines)
        return b"".join((*columns, bytes(self.contexts), *lines))


def chunk(tag: bytes, payload: bytes) -> bytes:
    return struct.pack("<4sIQ", tag, 0, len(payload)) + payload


def file_of(path: Path, *written: Written, end: bool = True) -> Path:
    parts = [chunk(b"REGN", w.region()) + chunk(b"TRCE", w.trace()) for w in written]
    path.write_bytes(b"".join(parts) + (chunk(b"END ", b"") if end else b""))
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "counts"


def test_what_the_plugin_wrote(path: Path) -> None:
    (found,) = read_traces(file_of(path, Written()))
    assert (found.region, found.iterations, found.truncated) == ("open-close", 1, False)
    # By address, then size; what was not executed is left out.
    assert found.addresses.tolist() == [BASE, BASE, BASE + 0x40]
    assert found.sizes.tolist() == [6, 8, 12]
    assert found.insns.tolist() == [1, 2, 4]
    assert found.items.tolist() == [2, 1, 1, 0]
    assert found.starts.tolist() == [0, 2, 4]
    assert found.sequence.tolist() == [0, 1]
    assert not found.addresses.flags.writeable


def test_regions_of_one_name_are_one(path: Path) -> None:
    second = Written(
        pieces=((30, 50), (70,)), sequence=(1, 0), contexts=(0, 0), entered={(3, 0, 0): 1}
    )
    first, other = read_traces(file_of(path, Written(), Written(name="stat"), second))
    assert (first.region, other.region) == ("open-close", "stat")
    assert first.iterations == 2
    assert first.items.tolist() == [2, 1, 1, 0, 2]
    assert first.sequence.tolist() == [0, 1, 2, 1]


@pytest.mark.parametrize(
    "entered",
    [
        {(3, 0, 0): 1},
        {(3, 0, 0): 2, (5, 0, 0): 1},
        {(3, 0, 0): 2, (7, 0, 0): 1},
        {(3, 0, 1): 2},
        {(3, 0, 0): 1, (4, 0, 0): 1},
    ],
)
def test_a_trace_that_the_counters_contradict(
    path: Path, entered: dict[tuple[int, int, int], int]
) -> None:
    with pytest.raises(LabError, match="its trace and its counters disagree on"):
        read_traces(file_of(path, Written(entered=entered)))


def test_code_that_was_translated_in_two_blocks_is_one_in_the_trace(path: Path) -> None:
    whole = read_traces(file_of(path, Written()))
    entered = {(3, 0, 0): 1, (4, 0, 0): 1, (6, 0, 0): 1}
    assert read_traces(file_of(path, Written(entered=entered))) == whole


def test_data_and_physical_addresses(path: Path) -> None:
    """Data has numbers in the order of its first access; a store's address is odd."""
    lines = ((0x7F00, 0x1F00), (0x2001, 0x3000), (0x2000, 0x3000))
    pieces = ((70, DATA | 0, DATA | 1, 30), (30, DATA | 2, DATA | 0, 50))
    written = Written(flags=6, pieces=pieces, lines=lines)
    (found,) = read_traces(file_of(path, written))
    assert found.physical is not None
    assert found.physical.tolist() == [0, 0, 0x40]
    assert found.data_virtual is not None
    assert found.data_physical is not None
    assert found.data_stores is not None
    assert found.data_virtual.tolist() == [0x2000, 0x2000, 0x7F00]
    assert found.data_physical.tolist() == [0x3000, 0x3000, 0x1F00]
    assert found.data_stores.tolist() == [False, True, False]
    assert found.items.tolist() == [2, DATA | 2, DATA | 1, 1, 1, DATA | 0, DATA | 2, 0]
    assert found.executions().sum() == 4
    # The physical addresses of code may be unknown; what is traced again may access other data.
    other = Written(flags=2, pieces=((70, 30), (30, DATA | 0, 50)), lines=((0x4000, 0x9000),))
    other.line_bytes = 32
    (short,) = read_traces(file_of(path, other))
    assert (found.data_line_bytes, short.data_line_bytes) == (64, 32)
    assert decode_traces(encode_traces([short])) == (short,)
    other = msgspec.structs.replace(other, line_bytes=64)
    (both,) = read_traces(file_of(path, written, other))
    assert both.physical is None
    assert both.data_virtual is not None
    assert both.data_virtual.tolist() == [0x2000, 0x2000, 0x4000, 0x7F00]
    assert both.items.tolist()[-3:] == [1, DATA | 2, 0]


def test_data_that_is_nowhere(path: Path) -> None:
    with pytest.raises(LabError, match="missing"):
        read_traces(file_of(path, Written(flags=3, pieces=((70, DATA | 0, 30), (30, 50)))))


def test_where_the_region_began_at_a_block_and_ended_within_one(path: Path) -> None:
    entered = {(7, 0, 0): 1, (3, 0, 0): 2, (5, 0, 0): 1}
    (found,) = read_traces(file_of(path, Written(marks=(7, 0, 5, 1), entered=entered)))
    assert found.executions().sum() == 4


def test_a_trace_that_was_cut_is_not_compared_with_the_counters(path: Path) -> None:
    (found,) = read_traces(file_of(path, Written(flags=1, entered={(3, 0, 0): 900})))
    assert found.truncated


def test_an_empty_trace(path: Path) -> None:
    empty = Written(pieces=(), sequence=(), contexts=(), flags=1)
    (found,) = read_traces(file_of(path, empty))
    assert found.executions().sum() == 0
    assert decode_traces(encode_traces([found])) == (found,)


def test_a_file_without_traces_and_a_file_that_is_cut_off(path: Path) -> None:
    assert read_traces(file_of(path)) == ()
    with pytest.raises(LabError, match="cut short"):
        read_traces(file_of(path, Written(), end=False))


@pytest.mark.parametrize("cut", [1, 12, 40, 100, -3])
def test_a_chunk_that_is_damaged(path: Path, cut: int) -> None:
    whole = Written().trace()
    payload = whole[:cut] if cut > 0 else whole + b"abc"
    path.write_bytes(
        chunk(b"REGN", Written().region()) + chunk(b"TRCE", payload) + chunk(b"END ", b"")
    )
    with pytest.raises(LabError, match="a trace is damaged"):
        read_traces(path)


def test_a_trace_of_blocks_that_are_nowhere(path: Path) -> None:
    with pytest.raises(LabError, match="blocks that are missing"):
        read_traces(file_of(path, Written(pieces=((70, 80), (30, 50)), flags=1)))
