# SPDX-License-Identifier: GPL-2.0-or-later
"""Traces made by hand, and what a cache does with them, written for clarity alone."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from kdelta.counts.trace import DATA, U64, Trace
from kdelta.cpus.model import Cache
from kdelta.replay.simulate import Placed

OWN, INTERRUPTS, OTHER = range(3)


class Block(NamedTuple):
    function: int
    offset: int
    size: int


def make_trace(
    blocks: Sequence[Block],
    pieces: Sequence[Sequence[int]],
    executed: Sequence[tuple[int, int]],
) -> tuple[Trace, Placed]:
    """A trace of `pieces` of block indexes; `executed` are (piece, context)."""
    starts = np.cumsum([0, *map(len, pieces)], dtype=np.uint64)
    trace = Trace(
        region="made",
        addresses=np.array([b.function * 0x10000 + b.offset for b in blocks], dtype=np.uint64),
        sizes=np.array([b.size for b in blocks], dtype=np.uint32),
        insns=np.array([max(1, b.size // 4) for b in blocks], dtype=np.uint32),
        physical=None,
        items=np.array([item for piece in pieces for item in piece], dtype=np.uint32),
        starts=starts,
        sequence=np.array([piece for piece, _ in executed], dtype=np.uint32),
        contexts=np.array([context for _, context in executed], dtype=np.uint8),
        truncated=False,
        iterations=1,
    )
    placed = Placed(
        function=np.array([b.function for b in blocks], dtype=np.uint32),
        offset=np.array([b.offset for b in blocks], dtype=np.uint64),
    )
    return trace, placed


class LeastRecent:
    """A cache of (key -> value) that evicts what was least recently used of a set."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self.sets: list[dict[int, int]] = [{} for _ in range(cache.sets)]

    def misses(self, number: int, key: int, value: int = 0) -> bool:
        held = self.sets[number % self.cache.sets]
        missed = held.pop(key, None) != value
        held[key] = value
        if len(held) > self.cache.ways:
            del held[next(iter(held))]
        return missed


class Step(NamedTuple):
    block: int
    context: int


def steps(trace: Trace) -> Iterator[Step]:
    """The blocks in the order of their execution."""
    for piece, context in zip(trace.sequence, trace.contexts, strict=True):
        for item in trace.items[int(trace.starts[piece]) : int(trace.starts[piece + 1])]:
            if not item & DATA:
                yield Step(int(item), int(context))


class Found(NamedTuple):
    total: list[int]
    by_function: list[int]


def naive_lines(trace: Trace, placed: Placed, layout: U64, cache: Cache, *, warm: bool) -> Found:
    """Misses of one layout, touch by touch."""
    held = LeastRecent(cache)
    for measured in (False, True) if warm else (True,):
        total, by_function = [0, 0, 0], [0] * len(layout)
        for block, context in steps(trace):
            function = int(placed.function[block])
            address = int(layout[function]) + int(placed.offset[block])
            first = address // cache.line_bytes
            last = (address + int(trace.sizes[block]) - 1) // cache.line_bytes
            for line in range(first, last + 1):
                if held.misses(line, line) and measured:
                    total[context] += 1
                    by_function[function] += 1
    return Found(total, by_function)


def naive_branches(trace: Trace, placed: Placed, layout: U64, cache: Cache, *, warm: bool) -> Found:
    """Misses of branch targets of one layout."""
    held = LeastRecent(cache)
    for measured in (False, True) if warm else (True,):
        total, by_function = [0, 0, 0], [0] * len(layout)
        before: Step | None = None
        for step in steps(trace):
            start = int(layout[placed.function[step.block]]) + int(placed.offset[step.block])
            if before is not None:
                function = int(placed.function[before.block])
                end = int(layout[function]) + int(placed.offset[before.block])
                end += int(trace.sizes[before.block])
                entered = step.context == INTERRUPTS != before.context
                if end != start and not entered:
                    missed = held.misses((end - 1) // cache.line_bytes, end - 1, start)
                    total[step.context] += missed and measured
                    by_function[function] += missed and measured
            before = step
    return Found(total, by_function)
