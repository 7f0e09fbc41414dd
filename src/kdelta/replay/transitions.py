# SPDX-License-Identifier: GPL-2.0-or-later
"""From which function to which execution went, and how often: the dynamic graph of a trace; and the
orders of functions that rules of thumb make of it.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from kdelta.counts.arrays import F64, I64, U8, Flags
from kdelta.counts.trace import DATA, Trace
from kdelta.replay.functions import Placement

_THUNK = "a thunk"
_NOWHERE = -1
PAGE_BYTES = 4096


class Transitions(msgspec.Struct, frozen=True, eq=False):
    """How often execution went from one unit to another one, over all traces with their weights.

    By pair of units, each once, (n_pairs,): `sources`, `targets`, `calls` (the target was entered
    at the first byte of a function: a call or a tail call) and `others` (a return, mostly).
    By unit, (n_units,): `insns` executed. first_use: units in the order in which they were first
    executed.
    """

    sources: I64
    targets: I64
    calls: F64
    others: F64
    insns: F64
    first_use: I64


class _Code(msgspec.Struct, frozen=True, eq=False):
    """A trace's blocks without data, thunks and pieces that have nothing else."""

    items: I64
    starts: I64
    sequence: I64
    contexts: U8


def transitions(
    traces: Sequence[Trace], placement: Placement, units: I64, weights: Sequence[float]
) -> Transitions:
    """The graph of the traces that a placement was made of.

    units: of each function the unit that it belongs to, -1 for none. A call through a thunk is one
    by the thunk's caller. Where the context changes (an interrupt comes or goes) nothing called.
    Traces are first used in the order of their weights, the largest first.
    """
    n_units = int(units.max(initial=-1)) + 1
    entries = np.array([function.entry for function in placement.functions], dtype=np.uint64)
    is_thunk = np.array([f.why_not == _THUNK for f in placement.functions], dtype=bool)
    calls: dict[tuple[int, int], float] = {}
    others: dict[tuple[int, int], float] = {}
    insns = np.zeros(n_units)
    used: dict[int, None] = {}
    for index in sorted(range(len(traces)), key=lambda index: -weights[index]):
        trace, placed, weight = traces[index], placement.placed[index], weights[index]
        unit = units[placed.function]
        code = _without(trace, is_thunk[placed.function])
        is_entry = placed.offset.astype(np.uint64) == entries[placed.function]
        for source, target, count, called in _pairs(code, unit, is_entry):
            into = calls if called else others
            into[source, target] = into.get((source, target), 0.0) + weight * count
        cost = weight * (trace.executions() * trace.insns).astype(np.float64)
        np.add.at(insns, unit[unit >= 0], cost[unit >= 0])
        used.update(dict.fromkeys(_first_use(code, unit)))
    pairs = sorted({*calls, *others})
    return Transitions(
        sources=np.array([source for source, _ in pairs], dtype=np.int64),
        targets=np.array([target for _, target in pairs], dtype=np.int64),
        calls=np.array([calls.get(pair, 0.0) for pair in pairs], dtype=np.float64),
        others=np.array([others.get(pair, 0.0) for pair in pairs], dtype=np.float64),
        insns=insns,
        first_use=np.array(list(used), dtype=np.int64),
    )


def _without(trace: Trace, dropped: Flags) -> _Code:
    """The trace's code without the blocks that are dropped."""
    items = trace.items
    kept = items < DATA
    kept[kept] = ~dropped[items[kept]]
    starts = np.concatenate([[0], np.cumsum(kept)])[trace.starts.astype(np.int64)]
    runs = (np.diff(starts) > 0)[trace.sequence]
    return _Code(
        items[kept].astype(np.int64),
        starts,
        trace.sequence[runs].astype(np.int64),
        trace.contexts[runs],
    )


def _pairs(code: _Code, unit: I64, is_entry: Flags) -> list[tuple[int, int, float, bool]]:
    """(source, target, times, whether called) of transitions between two units that differ."""
    times = np.bincount(code.sequence, minlength=len(code.starts) - 1)
    by_item = np.repeat(times, np.diff(code.starts))
    inner = np.ones(max(len(code.items) - 1, 0), dtype=bool)
    ends = code.starts[1:-1]
    inner[ends[(ends > 0) & (ends < len(code.items))] - 1] = False
    at = np.flatnonzero(inner)
    before, after = code.sequence[:-1], code.sequence[1:]
    same = code.contexts[:-1] == code.contexts[1:]
    source = np.concatenate([code.items[at], code.items[code.starts[before[same] + 1] - 1]])
    target = np.concatenate([code.items[at + 1], code.items[code.starts[after[same]]]])
    count = np.concatenate([by_item[at], np.ones(int(same.sum()), dtype=np.int64)])
    from_unit, to_unit, called = unit[source], unit[target], is_entry[target]
    moves = (from_unit != to_unit) & (from_unit >= 0) & (to_unit >= 0)
    width = int(unit.max(initial=0)) + 1
    keys = (from_unit[moves] * width + to_unit[moves]) * 2 + called[moves]
    distinct, index = np.unique(keys, return_inverse=True)
    sums = np.bincount(index, weights=count[moves], minlength=len(distinct))
    return [
        (key // 2 // width, key // 2 % width, float(total), bool(key % 2))
        for key, total in zip(distinct.tolist(), sums, strict=True)
    ]


def _first_use(code: _Code, unit: I64) -> list[int]:
    _, first = np.unique(code.sequence, return_index=True)
    found: dict[int, None] = {}
    for piece in code.sequence[np.sort(first)].tolist():
        found.update(
            dict.fromkeys(unit[code.items[code.starts[piece] : code.starts[piece + 1]]].tolist())
        )
    found.pop(_NOWHERE, None)
    return list(found)


def c3(graph: Transitions, sizes: I64, limit_bytes: int = PAGE_BYTES) -> I64:
    """Call-chain clustering: all units in an order, (n_units,), from calls and bytes of each.

    G. Ottoni, B. Maher: Optimizing Function Placement for Large-Scale Data-Center Applications,
    CGO 2017, section 4. Each function begins as a cluster of its own. From the hottest down, the
    cluster of a function is appended to that of its most frequent caller, unless it is the same or
    both together are larger than a page. Clusters are then laid out by density: what they execute
    to a byte. Hot is what executes many instructions. Ties go to the unit that is linked first.
    """
    n_units = len(sizes)
    caller = _callers(graph, n_units)
    cluster = np.arange(n_units)
    members = [[unit] for unit in range(n_units)]
    size = sizes.astype(np.int64).copy()
    for unit in np.argsort(-graph.insns, kind="stable").tolist():
        if caller[unit] < 0:
            continue
        into, moved = int(cluster[caller[unit]]), int(cluster[unit])
        if into == moved or size[into] + size[moved] > limit_bytes:
            continue
        members[into] += members[moved]
        cluster[members[moved]] = into
        size[into] += size[moved]
        members[moved] = []
    roots = [root for root in range(n_units) if members[root]]
    heat = np.bincount(cluster, weights=graph.insns, minlength=n_units)
    roots.sort(key=lambda root: (-heat[root] / max(int(size[root]), 1), root))
    return np.array([unit for root in roots for unit in members[root]], dtype=np.int64)


def _callers(graph: Transitions, n_units: int) -> I64:
    """Of each unit the one that called it most often, -1 where none did."""
    found = np.full(n_units, -1, dtype=np.int64)
    best = np.zeros(n_units)
    for source, target, count in zip(
        graph.sources.tolist(), graph.targets.tolist(), graph.calls.tolist(), strict=True
    ):
        if count > best[target]:
            found[target], best[target] = source, count
    return found


def by_first_use(graph: Transitions, n_units: int) -> I64:
    """Units in the order in which they were first executed, then those that never were."""
    return np.concatenate([graph.first_use, np.setdiff1d(np.arange(n_units), graph.first_use)])


def by_density(graph: Transitions, sizes: I64) -> I64:
    """Units by what they execute to a byte, the most first."""
    order: I64 = np.argsort(-graph.insns / np.maximum(sizes, 1), kind="stable")
    return order
