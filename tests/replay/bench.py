# SPDX-License-Identifier: GPL-2.0-or-later
"""How fast the replay is, and what holds it back. Processor time, the best of a few."""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.counts.arrays import U64
from kdelta.counts.trace import DATA, Trace
from kdelta.cpus.model import CPU, Cache
from kdelta.replay.as_executed import data_misses
from kdelta.replay.simulate import PlacedBlocks, PreparedTrace

from .synthetic import loop_trace
from .traces import OWN, Block, make_trace

L1I = Cache(sets=64, ways=8, line_bytes=64)


class Rate(NamedTuple):
    """Of one region: by layout, on one core."""

    insns: int
    blocks: int
    touches: float
    seconds: float

    @property
    def insns_a_second(self) -> float:
        """Instructions x layouts."""
        return self.insns / self.seconds


def rate(
    trace: Trace,
    placed: PlacedBlocks,
    layouts: U64,
    cache: Cache = L1I,
    rounds: int = 5,
    **how: Any,
) -> Rate:
    """What a replay on one core takes; `how` goes to PreparedTrace.replay."""
    prepared = PreparedTrace(trace, placed)
    seconds = []
    for _ in range(rounds):
        before = prepared.work()
        started = time.process_time()
        prepared.replay(layouts, cache, threads=1, **how)
        seconds.append(time.process_time() - started)
        touches = prepared.work().touches - before.touches
    return Rate(
        trace.executed_insns(),
        trace.executions().sum(),
        touches / len(layouts),
        min(seconds) / len(layouts),
    )


def ensemble(parts: Sequence[tuple[Trace, PlacedBlocks]], layouts: U64, **how: Any) -> float:
    """Seconds for all regions under all layouts, on all cores, with the preparation."""
    started = time.perf_counter()
    for trace, placed in parts:
        PreparedTrace(trace, placed).replay(layouts, L1I, **how)
    return time.perf_counter() - started


def touch_ns(sets_in_use: int, lines_a_set: int) -> float:
    """Nanoseconds a touch in the inner loop alone: so many lines in turn in each of so many sets of
    the cache, the sets one after the other.
    """
    n = 4096
    blocks = [
        Block(0, 64 * (64 * (i // sets_in_use % lines_a_set) + i % sets_in_use), 4)
        for i in range(n)
    ]
    made = make_trace(blocks, [range(n)], [(0, OWN)] * 500)
    found = rate(*made, np.zeros((1, 1), dtype=np.uint64), memo=False)
    return found.seconds / found.touches * 1e9


class DataRate(NamedTuple):
    """Of one pass over a trace on one core: accesses to data, and how many pass in a second."""

    accesses: int
    a_second: float


def data_rate(trace: Trace, cpu: CPU, rounds: int = 5) -> DataRate:
    """What a pass takes, from empty caches, with the preparation."""
    seconds = []
    for _ in range(rounds):
        started = time.process_time()
        data_misses(trace, cpu, warm=False)
        seconds.append(time.process_time() - started)
    is_data = np.concatenate([[0], np.cumsum(trace.items >= DATA)])
    by_piece = np.diff(is_data[trace.starts.astype(np.int64)])
    accesses = int(by_piece[trace.sequence].sum())
    return DataRate(accesses, accesses / min(seconds))


def accessing(n_lines: int) -> Trace:
    """A loop in which each block accesses one of so many lines, few of them often."""
    trace, _ = loop_trace(iterations=2000, calls=220, functions=780, variants=50, changed=0.1)
    random = np.random.default_rng(1)
    data = (random.zipf(1.3, len(trace.items)) % n_lines).astype(np.uint32) | np.uint32(DATA)
    lines = random.permutation(2 * n_lines)[:n_lines].astype(np.uint64) * np.uint64(64)
    return msgspec.structs.replace(
        trace,
        items=np.stack([trace.items, data], axis=1).reshape(-1),
        starts=trace.starts * np.uint64(2),
        physical=trace.addresses,
        data_virtual=lines + np.uint64(0xFFFF888000000000),
        data_physical=lines,
        data_stores=random.random(n_lines) < 0.3,
    )


def shuffles(placed: PlacedBlocks, sizes: npt.NDArray[Any], n: int) -> U64:
    """Random orders of functions, each at a multiple of 16: (n, n_functions)."""
    rng = np.random.default_rng(2)
    extent = np.zeros(int(placed.function.max()) + 1, dtype=np.int64)
    np.maximum.at(extent, placed.function, placed.offset.astype(np.int64) + sizes)
    extent = (extent + 15) // 16 * 16
    made = np.empty((n, len(extent)), dtype=np.uint64)
    for row in made:
        order = rng.permutation(len(extent))
        row[order] = np.cumsum(extent[order]) - extent[order]
    return made + np.uint64(0xFFFFFFFF81000000)


def varied(changed: float) -> Rate:
    """2000 iterations of 2300 blocks over 170 KiB of code, no two of them alike: `changed` of the
    calls in each are others, at random.
    """
    trace, placed = loop_trace(
        iterations=2000, calls=220, functions=780, variants=2000, changed=changed
    )
    return rate(trace, placed, shuffles(placed, trace.sizes, 4))
