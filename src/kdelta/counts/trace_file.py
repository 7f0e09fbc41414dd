# SPDX-License-Identifier: GPL-2.0-or-later
"""Traces from the plugin's file, compared with the counters of the same file."""

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.counts.arrays import I64, U8, U32, U64, sums_at
from kdelta.counts.model import CONTEXTS
from kdelta.counts.raw import ROW, ChunkColumns, read_region
from kdelta.counts.trace import DATA, Trace, read_only, require_sound
from kdelta.machines.chunks import read_chunks, require_complete
from kdelta.spec.errors import LabError

_HEAD = struct.Struct("<6I7Q")
_TRUNCATED, _DATA, _PHYSICAL = 1, 2, 4  # bits of its first word
_DATA_LINE_BYTES = 8  # where in that word the size of data lines begins
_BLOCK = np.dtype(
    [("address", "<u8"), ("id", "<u4"), ("bytes", "<u4"), ("silent", "<u4"), ("unused", "<u4")]
)
_UNIT = np.dtype(
    [("address", "<u8"), ("content", "<u8"), ("physical", "<u8")]
    + [(name, "<u4") for name in ("id", "bytes", "insns")]
)
_LINE = np.dtype([("virtual", "<u8"), ("physical", "<u8")])  # a store: virtual + 1
_NOWHERE = np.uint32(DATA - 1)


class _TracePart(msgspec.Struct):
    """One time that a region ran, as the plugin wrote it; items are ids of units.

    Blocks are what QEMU translated, and units what they are in the trace.
    """

    region: str
    flags: int
    iterations: int
    marks: tuple[int, int, int, int]  # BEGIN's block and group, END's block and group
    blocks: npt.NDArray[np.void]
    units: npt.NDArray[np.void]
    items: U32
    lengths: U32
    sequence: U32
    contexts: U8
    lines: npt.NDArray[np.void]


def read_traces(path: Path) -> tuple[Trace, ...]:
    """The traces of a finished run's regions, in the order in which they first began.

    Regions of one name are one: their sequences follow each other. A file of a run that was not
    traced holds none. Raises LabError for a file that is cut short or damaged, and for a trace that
    does not agree with the counters: what must hold is in docs/formats.md.
    """
    require_complete(path)
    parts: dict[str, list[_TracePart]] = {}
    rows: npt.NDArray[np.void] = np.zeros(0, ROW)
    for tag, payload in read_chunks(path):
        if tag == b"REGN":
            rows = read_region(payload).rows
        elif tag == b"TRCE":
            part = _part(payload)
            _check(part, rows)
            parts.setdefault(part.region, []).append(part)
    return tuple(_merged(same) for same in parts.values())


def _part(payload: memoryview) -> _TracePart:
    try:
        return _broken_down(payload)
    except (struct.error, ValueError) as error:  # ValueError is what frombuffer raises
        raise LabError(f"a trace is damaged: {error}", "run again") from error


def _broken_down(payload: memoryview) -> _TracePart:
    head = _HEAD.unpack_from(payload, 0)
    flags, *marks, name_length = head[:6]
    iterations, n_blocks, n_units, n_items, n_pieces, n_sequence, n_lines = head[6:]
    columns = ChunkColumns(payload, _HEAD.size + name_length)
    part = _TracePart(
        region=columns.name(name_length),
        flags=flags,
        iterations=iterations,
        marks=(marks[0], marks[1], marks[2], marks[3]),
        blocks=columns.next(_BLOCK, n_blocks),
        units=columns.next(_UNIT, n_units),
        items=columns.next("<u4", n_items),
        lengths=columns.next("<u4", n_pieces),
        sequence=columns.next("<u4", n_sequence),
        contexts=columns.next("u1", n_sequence),
        lines=columns.next(_LINE, n_lines),
    )
    columns.require_end()
    return part


def _check(part: _TracePart, rows: npt.NDArray[np.void]) -> None:
    """Each address was traced as often as counted, context by context: a block is counted when its
    first group is entered. That holds however a stretch of code was cut into blocks.
    """
    if part.flags & _TRUNCATED:
        return
    begin_block, begin_group, end_block, end_group = part.marks
    blocks = part.blocks[np.argsort(part.blocks["id"])]
    blocks = blocks[blocks["silent"] == 0]
    for context, word in enumerate(CONTEXTS):
        times = np.zeros(len(blocks), np.int64)
        of_first_group = rows[rows["place"] == context << 16]
        _, at, of = np.intersect1d(blocks["id"], of_first_group["block"], return_indices=True)
        times[at] = of_first_group["entered"][of]
        # Where a mark stands within a block: what is before BEGIN and after END was traced, too.
        if begin_group and context == part.contexts[0]:
            times[blocks["id"] == begin_block] += 1
        if not end_group and context == part.contexts[-1]:
            times[blocks["id"] == end_block] += 1
        traced = _times(part, context)
        address, excess = _covered((part.units, traced[part.units["id"]]), (blocks, -times))
        if len(wrong := np.flatnonzero(excess)):
            raise LabError(
                f"region {part.region}: its trace and its counters disagree on {len(wrong)} places,"
                f" the first at {int(address[wrong[0]]):#x}: {word} {excess[wrong[0]]:+d}",
                "this is a fault of kdelta's; please report it with the kernel and the workload",
            )


def _times(part: _TracePart, context: int) -> I64:
    """How often each unit occurs in that context, by its id."""
    of_piece = np.bincount(part.sequence[part.contexts == context], minlength=len(part.lengths))
    is_unit = part.items < DATA
    times = np.repeat(of_piece, part.lengths)[is_unit]
    n_ids = 1 + int(part.units["id"].max(initial=0))
    # Sums in double precision are exact up to 2^53.
    return np.bincount(part.items[is_unit], times, minlength=n_ids).astype(np.int64)


def _covered(*stretches: tuple[npt.NDArray[np.void], I64]) -> tuple[U64, I64]:
    """Addresses where the sum of the times changes that stretches of code cover them, and the sum
    from each on.
    """
    places = np.concatenate(
        [
            edge
            for rows, _ in stretches
            for edge in (rows["address"], rows["address"] + rows["bytes"])
        ]
    )
    changes = np.concatenate([sign * times for _, times in stretches for sign in (1, -1)])
    addresses, index = np.unique(places, return_inverse=True)
    return addresses, np.cumsum(sums_at(index, changes, len(addresses)))


def _merged(parts: Sequence[_TracePart]) -> Trace:
    """One trace of all times that the region ran; its blocks are the plugin's units.

    Numbers are given in the order of translation, which can depend on the host. So blocks are
    sorted by address and content, and data by address.
    """
    units = _known_units(parts)
    lines = np.unique(np.concatenate([part.lines for part in parts]))
    items, lengths, sequence = _joined([_renumbered(part, units, lines) for part in parts])
    arrays: dict[str, npt.NDArray[Any]] = {
        "addresses": units["address"],
        "sizes": units["bytes"],
        "insns": units["insns"],
        "items": items,
        "starts": np.concatenate([[0], np.cumsum(lengths, dtype=np.uint64)]),
        "sequence": sequence,
        "contexts": np.concatenate([part.contexts for part in parts]),
    }
    if all(part.flags & _PHYSICAL for part in parts):
        arrays["physical"] = units["physical"]
    if all(part.flags & _DATA for part in parts):
        arrays["data_virtual"] = lines["virtual"] & ~np.uint64(1)
        arrays["data_physical"] = lines["physical"]
        arrays["data_stores"] = lines["virtual"] & np.uint64(1)
    fields: dict[str, Any] = {name: read_only(array, name) for name, array in arrays.items()}
    if "data_virtual" in fields:
        fields["data_line_bytes"] = parts[0].flags >> _DATA_LINE_BYTES
    trace = Trace(
        region=parts[0].region,
        truncated=any(part.flags & _TRUNCATED for part in parts),
        iterations=sum(part.iterations for part in parts),
        **{"physical": None, **fields},
    )
    require_sound(trace)
    return trace


def _known_units(parts: Sequence[_TracePart]) -> npt.NDArray[np.void]:
    """The units of all parts, in order."""
    units = np.concatenate([part.units for part in parts])
    units = units[np.unique(units["id"], return_index=True)[1]]
    return units[np.lexsort((units["content"], units["bytes"], units["address"]))]


def _renumbered(
    part: _TracePart, units: npt.NDArray[np.void], lines: npt.NDArray[np.void]
) -> _TracePart:
    """With items that are indexes of these; LabError for one that is nowhere."""
    index = np.full(1 + int(units["id"].max(initial=0)), _NOWHERE)
    index[units["id"]] = np.arange(len(units), dtype=np.uint32)
    is_data = part.items >= DATA
    places = np.searchsorted(lines, part.lines).astype(np.uint32)
    data = part.items[is_data] & np.uint32(DATA - 1)
    items = part.items.copy()
    if (data >= len(places)).any() or (part.items[~is_data] >= len(index)).any():
        raise _nowhere(part)
    items[~is_data] = index[part.items[~is_data]]
    if (items[~is_data] == _NOWHERE).any():
        raise _nowhere(part)
    items[is_data] = places[data] | np.uint32(DATA)
    return msgspec.structs.replace(part, items=items)


def _nowhere(part: _TracePart) -> LabError:
    return LabError(f"region {part.region}: its trace names blocks that are missing", "run again")


def _joined(parts: Sequence[_TracePart]) -> tuple[U32, U32, U32]:
    """Items, lengths of pieces and sequence of all parts; a piece of several is kept once."""
    if len(parts) == 1:
        return parts[0].items, parts[0].lengths, parts[0].sequence
    numbers: dict[bytes, int] = {}
    kept: list[U32] = []
    sequences: list[U32] = []
    for part in parts:
        ends = np.cumsum(part.lengths, dtype=np.int64)
        number = np.zeros(len(part.lengths), np.uint32)
        for i, piece in enumerate(np.split(part.items, ends[:-1])):
            content = piece.tobytes()
            if content not in numbers:
                numbers[content] = len(kept)
                kept.append(piece)
            number[i] = numbers[content]
        sequences.append(number[part.sequence])
    lengths = np.array([len(piece) for piece in kept], np.uint32)
    return np.concatenate(kept), lengths, np.concatenate(sequences)
