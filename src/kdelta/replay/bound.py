# SPDX-License-Identifier: GPL-2.0-or-later
"""How few misses any order of the functions could have: a bound that holds for each of them.

docs/placement.md has the argument. In short: a cache whose lines can lie anywhere, that knows the
future, and into which a miss brings the best choice of bytes from anywhere, not those of one line.
"""

import math
from collections.abc import Iterator

import msgspec
import numpy as np

from kdelta.counts.arrays import F64, I64, U8, U32, Flags, run_offsets
from kdelta.counts.trace import DATA, Trace
from kdelta.cpus.model import Cache
from kdelta.replay.functions import Placement, TextRange
from kdelta.replay.layouts import floating
from kdelta.replay.simulate import PlacedBlocks

_LARGEST_LINE = 64  # what stays can move by lines of 64 bytes at once: its lines stay what they are
_OWN = 0
_NEVER = 1 << 62
_WINDOWS = 10_000  # with four times as many, bounds rise by up to 4 %
_LONGEST = 32  # pieces in a window
_SEGMENT = 1 << 18  # pieces: what is looked at apart, for memory
_EXECUTED_AT_ONCE = 1 << 16
_FEW = 64
_ROUNDED = 1e-6  # of a miss: more than what rounding adds


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


class _MovingGroup(msgspec.Struct, frozen=True):
    """What moves as one: [start, end) as linked, but from `open` on may be filled up behind it,
    where something else can be in another order. It begins at multiples of `alignment`.
    """

    start: int
    open: int
    end: int
    alignment: int


def shares_of_lines(code: Stretches, functions: U32, placement: Placement, line_bytes: int) -> F64:
    """The share of each stretch, (n_stretches,). functions: those that it is of, by index.

    It is what the stretch takes up of a line at least, in any order of functions. Any shares of
    bytes will do of which no line can hold more than 1 together, wherever in a function it begins.
    A byte gets 1 over the most executed bytes that a line which holds it can have.
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


def _groups(functions: U32, placement: Placement) -> Iterator[_MovingGroup]:
    """The groups of these functions, and what begins where they end."""
    wanted = np.zeros(len(placement.functions), dtype=bool)
    wanted[functions] = True
    for part in placement.ranges:
        for number in np.unique(part.groups[wanted[part.members]]).tolist():
            yield _group(part, number, placement)
    for start, end, alignment in floating(placement):
        first, last = np.array([start, end], dtype=np.uint64).view(np.int64).tolist()
        yield _MovingGroup(first, last, last, alignment)


def _group(part: TextRange, number: int, placement: Placement) -> _MovingGroup:
    start = int(np.array(placement.functions[int(part.first[number])].address).astype(np.int64))
    end = start + int(part.bytes[number])
    padding = int(part.alignments.max()) - 1
    return _MovingGroup(start, max(end - padding, start), end, int(part.alignments[number]))


def _moving(starts: I64, ends: I64, group: _MovingGroup, line_bytes: int) -> F64:
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
    line = run_offsets(counts) + first[owner]
    begin = np.maximum(starts[owner], line * line_bytes)
    end = np.minimum(ends[owner], (line + 1) * line_bytes)
    return owner, line, end - begin


class _Lists(msgspec.Struct, frozen=True, eq=False):
    """List i is values[starts[i]:starts[i + 1]]."""

    starts: I64
    values: I64

    def lengths(self) -> I64:
        return np.diff(self.starts)

    def joined(self, chosen: I64) -> tuple[I64, I64]:
        """The values of the chosen lists one after the other, and how many each has."""
        lengths = self.lengths()[chosen]
        return self.values[np.repeat(self.starts[chosen], lengths) + run_offsets(lengths)], lengths


class _Windows(msgspec.Struct, frozen=True, eq=False):
    """The stretches of the trace that are looked at as one: what each touches, with the window in
    which that is touched next, and whether the window is the region's own work.
    """

    touched: _Lists
    following: I64
    first: I64
    is_own: Flags


def least_misses(trace: Trace, placed: PlacedBlocks, placement: Placement, cache: Cache) -> int:
    """No order of the functions has fewer misses than this in the trace's own work.

    placed: of this trace in the placement. It holds for all layouts that keep the functions'
    alignment, whatever the cache holds at the beginning, and for the replay's way of counting.
    0 where nothing is known, as for what fits into the cache.
    """
    used = trace.executions() > 0
    first = trace.addresses.view(np.int64)
    last = first + trace.sizes.astype(np.int64)
    code = Stretches.of(first[used], last[used])
    shares = shares_of_lines(code, placed.function[used], placement, cache.line_bytes)
    capacity = float(cache.entries)
    if shares.sum() <= capacity:
        return 0
    blocks = _of_blocks(code, np.where(used, first, 0), np.where(used, last, 0))
    pieces, shares = _merged(_pieces(trace, blocks), shares)
    length = min(-(-len(trace.sequence) // _WINDOWS), _LONGEST)
    loads = 0.0
    for begin in range(0, len(trace.sequence), _SEGMENT):
        part = slice(begin, begin + _SEGMENT)
        windows = _windows(trace.sequence[part], trace.contexts[part], pieces, length)
        loads += _loads(windows, shares, capacity)
    return max(0, math.ceil(loads - _ROUNDED))


def _of_blocks(code: Stretches, first: I64, last: I64) -> _Lists:
    """The stretches of each block; none for an empty one."""
    low, high = np.searchsorted(code.starts, first), np.searchsorted(code.starts, last)
    starts = np.concatenate([[0], np.cumsum(high - low)])
    return _Lists(starts, np.repeat(low, high - low) + run_offsets(high - low))


def _pieces(trace: Trace, blocks: _Lists) -> _Lists:
    """The stretches that each piece touches, each once."""
    is_code = trace.items < DATA
    piece = np.repeat(np.arange(len(trace.starts) - 1), np.diff(trace.starts).astype(np.int64))
    values, lengths = blocks.joined(trace.items[is_code].astype(np.int64))
    return _distinct(np.repeat(piece[is_code], lengths), values, len(trace.starts) - 1)


def _distinct(lists: I64, values: I64, n_lists: int) -> _Lists:
    """Lists from pairs (list, value), each pair once, in order."""
    width = int(values.max(initial=0)) + 1
    keys = _sorted_distinct(lists * width + values)
    return _Lists(np.searchsorted(keys, np.arange(n_lists + 1) * width), keys % width)


def _sorted_distinct(keys: I64) -> I64:
    """As numpy.unique, whose hashing takes ten times as long where most keys are distinct."""
    keys = np.sort(keys)
    is_first = np.ones(len(keys), dtype=bool)
    is_first[1:] = keys[1:] != keys[:-1]
    return keys[is_first]


def _merged(pieces: _Lists, shares: F64) -> tuple[_Lists, F64]:
    """Stretches that are in the very same pieces, taken together; they are told by a hash."""
    marks = np.random.default_rng(0).integers(0, 1 << 63, len(pieces.starts) - 1, dtype=np.uint64)
    hashes = np.zeros(len(shares), dtype=np.uint64)
    piece = np.repeat(np.arange(len(pieces.starts) - 1), pieces.lengths())
    np.add.at(hashes, pieces.values, marks[piece])
    _, merged = np.unique(hashes, return_inverse=True)
    found = _distinct(piece, merged[pieces.values], len(pieces.starts) - 1)
    return found, np.bincount(merged, weights=shares).astype(np.float64)


def _windows(sequence: U32, contexts: U8, pieces: _Lists, length: int) -> _Windows:
    """Cuts a segment of the trace into windows of at most so many pieces, of one context each."""
    n_executed, n_stretches = len(sequence), int(pieces.values.max()) + 1
    is_own = contexts == _OWN
    cut = np.arange(n_executed) % length == 0
    cut[1:] |= is_own[1:] != is_own[:-1]
    window = np.cumsum(cut) - 1
    n_windows = int(window[-1]) + 1
    found = [
        _sorted_distinct(np.repeat(window[part], lengths) * n_stretches + values)
        for at in range(0, n_executed, _EXECUTED_AT_ONCE)
        for part in [slice(at, at + _EXECUTED_AT_ONCE)]
        for values, lengths in [pieces.joined(sequence[part].astype(np.int64))]
    ]
    keys = _sorted_distinct(np.concatenate(found))
    at, stretch = keys // n_stretches, keys % n_stretches
    own = is_own[np.flatnonzero(cut)]
    following, first = _next_touches(at, stretch, own, n_stretches)
    starts = np.searchsorted(at, np.arange(n_windows + 1))
    return _Windows(_Lists(starts, stretch), following, first, own)


def _next_touches(at: I64, stretch: I64, own: Flags, n_stretches: int) -> tuple[I64, I64]:
    """For each touch the window of the next one of the same stretch, and for each stretch that of
    its first. What is touched next by others' work costs the region nothing, and so is not kept.
    """
    when = np.where(own[at], at, _NEVER)
    order = np.lexsort((at, stretch))
    same = stretch[order][1:] == stretch[order][:-1]
    following = np.full(len(at), _NEVER)
    following[order[:-1][same]] = when[order[1:]][same]
    first = np.full(n_stretches, _NEVER)
    begins = order[np.concatenate([[True], ~same])]
    first[stretch[begins]] = when[begins]
    return following, first


def _loads(windows: _Windows, shares: F64, capacity: float) -> float:
    """The least that has to be loaded, in lines, from a cache filled as well as can be.

    L. A. Belady: A study of replacement algorithms for a virtual-storage computer, IBM Systems
    Journal 5 (1966): whatever is used last in the future leaves. Parts of stretches may.
    """
    held, following = shares.copy(), windows.first.copy()
    _evict(held, following, capacity)
    loads = 0.0
    starts = windows.touched.starts.tolist()
    for low, high, own in zip(starts[:-1], starts[1:], windows.is_own.tolist(), strict=True):
        touched = windows.touched.values[low:high]
        if own:
            loads += float((shares[touched] - held[touched]).sum())
        held[touched] = shares[touched]
        following[touched] = windows.following[low:high]
        _evict(held, following, capacity)
    return loads


def _evict(held: F64, following: I64, capacity: float) -> None:
    excess = float(held.sum()) - capacity
    if excess <= 0:
        return
    latest = _latest(np.flatnonzero(held), held, following, excess)
    sums = np.cumsum(held[latest])
    last = int(np.searchsorted(sums, excess))
    last = min(last, len(latest) - 1)
    left = max(float(sums[last]) - excess, 0.0)
    held[latest[:last]] = 0
    held[latest[last]] = left


def _latest(there: I64, held: F64, following: I64, excess: float) -> I64:
    """Of what is there, that which is used last, the very last first, and enough of it. Sorting all
    would take most of the time.
    """
    count = _FEW
    while True:
        count = min(count, len(there))
        some = there[np.argpartition(-following[there], count - 1)[:count]]
        if count == len(there) or held[some].sum() >= excess:
            return some[np.argsort(-following[some], kind="stable")]
        count *= 4
