# SPDX-License-Identifier: GPL-2.0-or-later
"""What share of a line a stretch of executed code takes up at least, in any order of functions.

Any shares of bytes will do of which no line can hold more than 1 together, wherever in a function
it begins. A byte gets 1 over the most executed bytes that a line which holds it can have.
"""

from collections.abc import Iterator

import msgspec
import numpy as np

from kdelta.counts.arrays import F64, I64, U32
from kdelta.replay.functions import Placement, TextRange
from kdelta.replay.layouts import floating

_LARGEST_LINE = 64  # what stays can move by lines of 64 bytes at once: its lines stay what they are


class Stretches(msgspec.Struct, frozen=True, eq=False):
    """Executed code, [starts, ends) as linked, by address, cut wherever a block begins or ends."""

    starts: I64
    ends: I64

    @classmethod
    def of(cls, first: I64, last: I64) -> "Stretches":
        """Of blocks [first, last), which may overlap."""
        edges = np.unique(np.concatenate([first, last]))
        depth = np.zeros(len(edges), dtype=np.int64)
        np.add.at(depth, np.searchsorted(edges, first), 1)
        np.add.at(depth, np.searchsorted(edges, last), -1)
        held = np.flatnonzero(np.cumsum(depth) > 0)
        return cls(edges[held], edges[held + 1])

    def within(self, start: int, end: int) -> slice:
        """Those that begin in [start, end)."""
        low, high = np.searchsorted(self.starts, [start, end])
        return slice(int(low), int(high))


class _Group(msgspec.Struct, frozen=True):
    """What moves as one: [start, end) as linked, but from `open` on may be filled up behind it,
    where something else can be in another order. It begins at multiples of `alignment`.
    """

    start: int
    open: int
    end: int
    alignment: int


def shares_of_lines(code: Stretches, functions: U32, placement: Placement, line_bytes: int) -> F64:
    """The share of each stretch, (n_stretches,). functions: those that it is of, by index.

    Of lines longer than 64 bytes (pages) it is just the share of bytes, which is less.
    """
    lengths = code.ends - code.starts
    found: F64 = lengths / line_bytes
    if line_bytes > _LARGEST_LINE:
        return found
    stays = np.ones(len(lengths), dtype=bool)
    for group in _groups(functions, placement):
        part = code.within(group.start, group.end)
        if part.start == part.stop:
            continue
        stays[part] = False
        found[part] = _moving(code.starts[part], code.ends[part], group, line_bytes)
    found[stays] = _staying(code.starts[stays], code.ends[stays], placement, line_bytes)
    return found


def _groups(functions: U32, placement: Placement) -> Iterator[_Group]:
    """The groups of these functions, and what begins where they end."""
    wanted = np.zeros(len(placement.functions), dtype=bool)
    wanted[functions] = True
    for part in placement.ranges:
        for number in np.unique(part.groups[wanted[part.members]]).tolist():
            yield _group(part, number, placement)
    for start, end, alignment in floating(placement):
        first, last = np.array([start, end], dtype=np.uint64).view(np.int64).tolist()
        yield _Group(first, last, last, alignment)


def _group(part: TextRange, number: int, placement: Placement) -> _Group:
    start = int(np.array(placement.functions[int(part.first[number])].address).astype(np.int64))
    end = start + int(part.bytes[number])
    padding = int(part.alignments.max()) - 1
    return _Group(start, max(end - padding, start), end, int(part.alignments[number]))


def _moving(starts: I64, ends: I64, group: _Group, line_bytes: int) -> F64:
    """Shares of a group's stretches: the worst of all phases that its alignment allows."""
    step = min(group.alignment, line_bytes)
    starts, ends = starts - group.start, ends - group.start
    size = max(int(ends.max()), group.open - group.start)
    executed = np.zeros(size, dtype=bool)
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        executed[start:end] = True
    # Around the group anything may be executed.
    around = np.ones(line_bytes, dtype=np.int64)
    sums = np.concatenate([[0], np.cumsum(np.concatenate([around, executed, around]))])
    lines = np.arange(step, line_bytes + size, step)  # where in `sums` a line begins
    held = sums[lines + line_bytes] - sums[lines]
    most = np.zeros(size, dtype=np.int64)
    byte = np.arange(size) + line_bytes
    last = byte // step - 1  # the last of the lines that hold a byte
    for back in range(line_bytes // step):
        line = last - back
        most = np.maximum(most, np.where(line >= 0, held[np.maximum(line, 0)], 0))
    share = np.concatenate([[0.0], np.cumsum(executed / np.maximum(most, 1))])
    found: F64 = share[ends] - share[starts]
    return found


def _staying(starts: I64, ends: I64, placement: Placement, line_bytes: int) -> F64:
    """Shares of stretches that keep their lines. In .text, what moves may fill up these lines."""
    owner, line, length = _by_line(starts, ends, line_bytes)
    lines, index = np.unique(line, return_inverse=True)
    held = np.bincount(index, weights=length, minlength=len(lines))
    bounds = np.array(placement.text, dtype=np.uint64).view(np.int64) // line_bytes
    room = np.where((lines >= bounds[0]) & (lines <= bounds[1]), line_bytes, 0)
    kept = [function for function in placement.functions if not function.movable]
    first = np.array([function.address for function in kept], dtype=np.uint64).view(np.int64)
    last = first + np.array([function.bytes for function in kept], dtype=np.int64)
    _, known, covered = _by_line(first, last, line_bytes)
    is_here = np.isin(known, lines)
    np.subtract.at(room, np.searchsorted(lines, known[is_here]), covered[is_here])
    most = np.minimum(held + np.maximum(room, 0), line_bytes)
    parts: F64 = length / most[index]
    return np.bincount(owner, weights=parts, minlength=len(starts)).astype(np.float64)


def _by_line(starts: I64, ends: I64, line_bytes: int) -> tuple[I64, I64, I64]:
    """Stretches cut at lines: of each part which stretch it is of, its line and its bytes."""
    first, last = starts // line_bytes, (ends - 1) // line_bytes
    counts = np.maximum(last - first + 1, 0)
    owner = np.repeat(np.arange(len(starts)), counts)
    line = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    line += first[owner]
    begin = np.maximum(starts[owner], line * line_bytes)
    end = np.minimum(ends[owner], (line + 1) * line_bytes)
    return owner, line, end - begin
