# SPDX-License-Identifier: GPL-2.0-or-later
"""How few misses any order of the functions could have: a bound that holds for each of them.

docs/placement.md has the argument. In short: a cache whose lines can lie anywhere, that knows the
future, and into which a miss brings the best choice of bytes from anywhere, not those of one line.
"""

import math

import msgspec
import numpy as np

from kdelta.counts.arrays import F64, I64, U8, U32, Flags
from kdelta.counts.trace import DATA, Trace
from kdelta.cpus.model import Cache
from kdelta.replay.functions import Placement
from kdelta.replay.line_shares import Stretches, shares_of_lines
from kdelta.replay.simulate import PlacedBlocks

_OWN = 0
_NEVER = 1 << 62
_WINDOWS = 10_000  # with four times as many, bounds rise by up to 4 %
_LONGEST = 32  # pieces in a window
_SEGMENT = 1 << 18  # pieces: what is looked at apart, for memory
_EXECUTED_AT_ONCE = 1 << 16
_FEW = 64
_ROUNDED = 1e-6  # of a miss: more than what rounding adds


class _Lists(msgspec.Struct, frozen=True, eq=False):
    """List i is values[starts[i]:starts[i + 1]]."""

    starts: I64
    values: I64

    def lengths(self) -> I64:
        return np.diff(self.starts)

    def joined(self, chosen: I64) -> tuple[I64, I64]:
        """The values of the chosen lists one after the other, and how many each has."""
        lengths = self.lengths()[chosen]
        ends = np.cumsum(lengths)
        inside = np.arange(int(lengths.sum())) - np.repeat(ends - lengths, lengths)
        return self.values[np.repeat(self.starts[chosen], lengths) + inside], lengths


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
    values = np.arange(int(starts[-1])) + np.repeat(low - starts[:-1], high - low)
    return _Lists(starts, values)


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
    starts = np.searchsorted(keys, np.arange(n_lists + 1) * width)
    return _Lists(starts, keys % width)


def _sorted_distinct(keys: I64) -> I64:
    """As numpy.unique, whose hashing takes ten times as long where most keys are distinct."""
    keys = np.sort(keys)
    is_first = np.ones(len(keys), dtype=bool)
    is_first[1:] = keys[1:] != keys[:-1]
    return keys[is_first]


def _merged(pieces: _Lists, shares: F64) -> tuple[_Lists, F64]:
    """Stretches that are in the very same pieces, taken together; they are told by a hash."""
    rng = np.random.default_rng(0)
    marks = rng.integers(0, 1 << 63, len(pieces.starts) - 1, dtype=np.uint64)
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
        for part in _parts(n_executed)
        for values, lengths in [pieces.joined(sequence[part].astype(np.int64))]
    ]
    keys = _sorted_distinct(np.concatenate(found))
    at, stretch = keys // n_stretches, keys % n_stretches
    own = is_own[np.flatnonzero(cut)]
    following, first = _next_touches(at, stretch, own, n_stretches)
    starts = np.searchsorted(at, np.arange(n_windows + 1))
    return _Windows(_Lists(starts, stretch), following, first, own)


def _parts(n_executed: int) -> list[slice]:
    return [slice(at, at + _EXECUTED_AT_ONCE) for at in range(0, n_executed, _EXECUTED_AT_ONCE)]


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
    there = np.flatnonzero(held)
    latest = _latest(there, held, following, excess)
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
