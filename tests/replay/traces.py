# SPDX-License-Identifier: GPL-2.0-or-later
"""Traces made by hand, and what a cache does with them, written for clarity alone."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from kdelta.counts.arrays import U64
from kdelta.counts.trace import DATA, Trace
from kdelta.cpus.model import Cache
from kdelta.replay.simulate import Misses, PlacedBlocks, PreparedTrace

Made = tuple[Trace, PlacedBlocks, U64]

OWN, INTERRUPTS, OTHER = range(3)
L1I = Cache(sets=16, ways=4, line_bytes=64)


class Block(NamedTuple):
    function: int
    offset: int
    size: int


def make_trace(
    blocks: Sequence[Block],
    pieces: Sequence[Sequence[int]],
    executed: Sequence[tuple[int, int]],
) -> tuple[Trace, PlacedBlocks]:
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
    placed = PlacedBlocks(
        function=np.array([b.function for b in blocks], dtype=np.uint32),
        offset=np.array([b.offset for b in blocks], dtype=np.uint64),
    )
    return trace, placed


class CacheContents:
    """A cache of (key -> value), written for clarity."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self.sets: list[list[tuple[int, int] | None]] = [
            [None] * cache.ways for _ in range(cache.sets)
        ]
        self.times = 0

    def misses(self, number: int, key: int, value: int = 0) -> bool:
        """Whether the key was not there, or with another value, in the set of that number."""
        ways = self.sets[number % self.cache.sets]
        at = next((way for way, held in enumerate(ways) if held and held[0] == key), None)
        missed = at is None or ways[at] != (key, value)
        if at is None:
            at = self._leaves(ways)
            if self.cache.replacement != "random":
                ways.insert(0, ways.pop(at))
                at = 0
        elif self.cache.replacement == "lru":
            ways.insert(0, ways.pop(at))
            at = 0
        ways[at] = (key, value)
        return missed

    def _leaves(self, ways: list[tuple[int, int] | None]) -> int:
        """The way of what leaves: the last one, but under "random"."""
        if self.cache.replacement != "random":
            return len(ways) - 1
        if None in ways:
            return ways.index(None)
        self.times += 1
        number = self.times * 0x9E3779B9 % 2**32
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
            number = (number ^ number >> shift) * factor % 2**32
        return number * len(ways) // 2**32


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


def naive_lines(
    trace: Trace,
    placed: PlacedBlocks,
    layout: U64,
    cache: Cache,
    *,
    warm: bool,
    line_bytes: Sequence[int] | None = None,
) -> Found:
    """Misses of one layout, touch by touch."""
    held = CacheContents(cache)
    for measured in (False, True) if warm else (True,):
        total, by_function = [0, 0, 0], [0] * len(layout)
        for block, context in steps(trace):
            function = int(placed.function[block])
            address = int(layout[function]) + int(placed.offset[block])
            size = line_bytes[function] if line_bytes is not None else cache.line_bytes
            if not size:
                continue
            last = (address + int(trace.sizes[block]) - 1) // size
            for line in range(address // size, last + 1):
                if held.misses(line, line * 2**64 + size) and measured:
                    total[context] += 1
                    by_function[function] += 1
    return Found(total, by_function)


def naive_branches(
    trace: Trace, placed: PlacedBlocks, layout: U64, cache: Cache, *, warm: bool
) -> Found:
    """Misses of branch targets of one layout."""
    held = CacheContents(cache)
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


@st.composite
def made_traces(draw: st.DrawFn) -> Made:
    """A trace of repeated pieces over some functions, and a few layouts of them."""
    n_functions = draw(st.integers(1, 6))
    blocks = draw(
        st.lists(
            st.builds(
                Block,
                function=st.integers(0, n_functions - 1),
                offset=st.integers(0, 12).map(lambda n: n * 8),
                size=st.sampled_from([1, 4, 8, 16, 24, 70, 300]),
            ),
            min_size=1,
            max_size=12,
        )
    )
    piece = st.lists(st.integers(0, len(blocks) - 1), max_size=12)
    pieces = draw(st.lists(piece, min_size=1, max_size=6))
    execution = st.tuples(st.integers(0, len(pieces) - 1), st.sampled_from([0, 0, 0, 1, 2]))
    loop = draw(st.lists(execution, max_size=12))
    executed = draw(st.lists(execution, max_size=12)) + loop * draw(st.integers(1, 60))
    start = st.integers(0, 1 << 12).map(lambda n: n * 8 + 0xFFFFFFFF81000000)
    layout = st.lists(start, min_size=n_functions, max_size=n_functions)
    layouts = draw(st.lists(layout, min_size=1, max_size=3))
    return (*make_trace(blocks, pieces, executed), np.array(layouts, dtype=np.uint64))


replacements = st.sampled_from(["lru", "round-robin", "random"])

caches = st.builds(
    Cache,
    sets=st.sampled_from([1, 2, 4, 64]),
    ways=st.one_of(st.integers(1, 20), st.sampled_from([32, 64, 512])),
    line_bytes=st.sampled_from([1, 16, 64, 4096]),
    replacement=replacements,
)


def looping(iterations: int, *, noise: int = 0) -> Made:
    """A loop over 40 functions of 200 bytes; every `noise` iterations a piece of an interrupt."""
    blocks = [Block(f, 24 * i, 24) for f in range(40) for i in range(8)]
    pieces = [range(start, start + 16) for start in range(0, 320, 16)]
    executed = []
    for index in range(iterations):
        executed += [(piece, OWN) for piece in range(18)]
        if noise and index % noise == noise - 1:
            executed += [(18, INTERRUPTS), (19, OTHER)]
    rng = np.random.default_rng(5)
    layouts = np.array([rng.choice(90, 40, replace=False) * 208 for _ in range(9)], dtype=np.uint64)
    return (*make_trace(blocks, pieces, executed), layouts + np.uint64(0xFFFFFFFF81000000))


def replay(trace: Trace, placed: PlacedBlocks, layouts: U64, cache: Cache, **how: Any) -> Misses:
    """The misses of one trace under each layout; see PreparedTrace."""
    return PreparedTrace(trace, placed).replay(layouts, cache, **how)
