# SPDX-License-Identifier: GPL-2.0-or-later
"""Code and data in two levels, against caches written for clarity."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.counts.arrays import U64
from kdelta.counts.trace import DATA, Trace
from kdelta.cpus.model import Cache
from kdelta.replay.hierarchy import HierarchyMisses, PreparedHierarchy
from kdelta.replay.simulate import PlacedBlocks, PreparedTrace
from kdelta.spec.errors import LabError, UserError
from tests.replay.small_caches import small, with_data

from .traces import L1I, OWN, Block, CacheContents, Made, looping, made_traces, make_trace, replay

BIG = Cache(sets=1024, ways=16, line_bytes=64)


Access = tuple[list[int], int, int]


class Levels(NamedTuple):
    l1i: Cache
    l1d: Cache
    l2: Cache


def naive(trace: Trace, placed: PlacedBlocks, layout: U64, levels: Levels, *, warm: bool) -> Any:
    """l1i, l2_code, l1d, l2_data by context, and l1i and l2_code by function."""
    assert trace.physical is not None
    assert trace.data_virtual is not None
    assert trace.data_physical is not None
    held = [CacheContents(cache) for cache in levels]

    def below(missed: bool, physical: int) -> tuple[bool, bool]:
        return missed, missed and held[2].misses(physical // 64, physical // 64)

    lines = [*zip(trace.data_virtual.tolist(), trace.data_physical.tolist(), strict=True)]

    def data_misses() -> list[bool]:
        """Of each access, whether its first level has not got it."""
        where = [lines[line] for line in accessed(trace)]
        return [held[1].misses(virtual // 64, physical // 64) for virtual, physical in where]

    if warm:
        data_misses()
    of_data = data_misses()
    for measured in (False, True) if warm else (True,):
        total = np.zeros((4, 3), dtype=int)
        rows = np.zeros((2, len(layout)), dtype=int)
        number = 0
        for piece, context in zip(trace.sequence, trace.contexts, strict=True):
            for item in map(int, trace.items[int(trace.starts[piece]) :][: lengths(trace)[piece]]):
                if item & DATA:
                    total[2:, context] += below(of_data[number], lines[item - DATA][1])
                    number += 1
                    continue
                function = placed.function[item]
                start = int(layout[function]) + int(placed.offset[item])
                shift = int(trace.physical[item]) - int(trace.addresses[item])
                for line in range(start // 64, (start + int(trace.sizes[item]) - 1) // 64 + 1):
                    where = line * 64 + shift
                    missed = below(held[0].misses(line, where // 64), where)
                    total[:2, context] += missed
                    rows[:, function] += missed
        if measured:
            return total.tolist(), rows.tolist()
    raise AssertionError


def accessed(trace: Trace) -> Iterator[int]:
    """The lines of data in the order of their accesses."""
    for piece in trace.sequence:
        items = trace.items[int(trace.starts[piece]) : int(trace.starts[piece + 1])]
        yield from (int(item) - DATA for item in items if item & DATA)


def replay_hierarchy(
    trace: Trace, placed: PlacedBlocks, layouts: U64, *, l1d: Cache, **how: Any
) -> HierarchyMisses:
    return PreparedHierarchy(trace, placed, l1d).replay(layouts, **how)


def l2_total(found: HierarchyMisses) -> U64:
    """Misses of the second level: (n_layouts, 3), by context."""
    return found.l2_code.total + found.l2_data


def lengths(trace: Trace) -> list[int]:
    return [int(n) for n in np.diff(trace.starts)]


def as_lists(found: HierarchyMisses, index: int) -> Any:
    kinds = (found.l1i.total[index], found.l2_code.total[index], found.l1d, found.l2_data[index])
    rows = (found.l1i.by_function, found.l2_code.by_function)
    return [k.tolist() for k in kinds], [r[index].tolist() for r in rows if r is not None]


@given(
    made_traces(),
    st.tuples(
        st.lists(st.integers(0, 300).map(lambda n: n * 64), max_size=12),
        st.integers(1, 5),
        st.integers(1, 3),
    ),
    st.builds(Levels, small, small, small),
    st.tuples(st.booleans(), st.booleans()),
)
def test_misses_are_those_of_plain_caches(
    made: Made, access: Access, levels: Levels, how: tuple[bool, bool]
) -> None:
    trace, placed, layouts = made
    warm, memo = how
    trace = with_data(trace, *access)
    prepared = PreparedHierarchy(trace, placed, levels.l1d, warm=warm)
    found = prepared.replay(layouts, l1i=levels.l1i, l2=levels.l2, memo=memo, threads=1)
    for index, layout in enumerate(layouts):
        expected = naive(trace, placed, layout, levels, warm=warm)
        assert as_lists(found, index) == expected


def test_the_first_level_of_code_does_not_see_the_data() -> None:
    trace, placed, layouts = looping(30, noise=3)
    full = with_data(trace, [n * 64 for n in range(50)], 3, 0)
    found = replay_hierarchy(full, placed, layouts, l1i=L1I, l1d=Cache(4, 2, 64), l2=BIG)
    alone = replay(trace, placed, layouts, L1I)
    assert found.l1i.total.tolist() == alone.total.tolist()
    assert found.l1i.total.sum() > 0
    assert found.l1d.sum() > 0
    # All of it fits in the second level, which is warm.
    assert l2_total(found).sum() == 0


def test_code_and_data_share_the_second_level() -> None:
    """Two lines that never meet in the first level put each other out in the second."""
    blocks = [Block(0, 0, 8), Block(0, 64, 8)]
    trace, placed = make_trace(blocks, [[0, 1]], [(0, OWN)] * 10)
    line = Cache(sets=1, ways=1, line_bytes=64)
    two = Cache(sets=1, ways=2, line_bytes=64)
    layout = np.zeros((1, 1), dtype=np.uint64)
    without = with_data(trace, [], 1, 1)
    found = replay_hierarchy(without, placed, layout, l1i=line, l1d=line, l2=two)
    assert (found.l1i.total.sum(), l2_total(found).sum()) == (20, 0)
    full = with_data(trace, [4096 * 2, 4096 * 3], 1, 2)
    found = replay_hierarchy(full, placed, layout, l1i=line, l1d=line, l2=two)
    assert (found.l1i.total.sum(), found.l2_code.total.sum()) == (20, 20)
    assert (found.l1d.sum(), found.l2_data.sum()) == (20, 20)


def test_a_loop_is_simulated_only_while_it_is_new() -> None:
    trace, placed, layouts = looping(700, noise=7)
    full = with_data(trace, [n * 64 for n in range(50)], 3, 1)
    prepared = PreparedHierarchy(full, placed, Cache(4, 2, 64))
    caches: dict[str, Any] = {"l1i": L1I, "l2": Cache(64, 4, 64)}
    fast = prepared.replay(layouts, **caches)
    work = prepared.work()
    assert work.simulated * 10 < work.units
    slow = prepared.replay(layouts, **caches, memo=False)
    assert prepared.work().simulated - work.simulated == work.units
    assert [as_lists(fast, i) for i in range(9)] == [as_lists(slow, i) for i in range(9)]
    one = prepared.replay(layouts, **caches, threads=1)
    assert [as_lists(fast, i) for i in range(9)] == [as_lists(one, i) for i in range(9)]
    unasked = prepared.replay(layouts, **caches, by_function=False)
    assert unasked.l2_code.by_function is None
    assert l2_total(unasked).tolist() == l2_total(fast).tolist()


def test_what_does_not_fit_is_refused() -> None:
    trace, placed, layouts = looping(2)
    full = with_data(trace, [64], 3, 1)
    caches: dict[str, Any] = {"l1i": L1I, "l1d": L1I, "l2": BIG}
    with pytest.raises(UserError, match="region made has no accesses to data"):
        replay_hierarchy(trace, placed, layouts, **caches)
    with pytest.raises(ValueError, match="goes through a hierarchy"):
        PreparedTrace(full, placed, data=True).replay(layouts, L1I)
    with pytest.raises(UserError, match="lines of 32 and 64 bytes"):
        replay_hierarchy(full, placed, layouts, **(caches | {"l1i": Cache(16, 4, 32)}))
    with pytest.raises(UserError, match="lines of 32 bytes"):
        replay_hierarchy(full, placed, layouts, **(caches | {"l1d": Cache(16, 4, 32)}))
    short = msgspec.structs.replace(full, data_line_bytes=32)
    with pytest.raises(UserError, match="lines of 16 bytes"):
        replay_hierarchy(short, placed, layouts, **(caches | {"l1d": Cache(16, 4, 16)}))
    for level in caches:
        with pytest.raises(UserError, match="cannot be replayed"):
            replay_hierarchy(full, placed, layouts, **(caches | {level: Cache(1 << 21, 1, 64)}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("items", np.full(999, DATA | 1, dtype=np.uint32)),
        ("physical", np.zeros(319, dtype=np.uint64)),
        ("data_physical", np.zeros(2, dtype=np.uint64)),
    ],
)
def test_damaged_data_is_refused(name: str, value: Any) -> None:
    trace, placed, layouts = looping(2)
    full = with_data(trace, [64], 3, 1)
    damaged = msgspec.structs.replace(full, **{name: value[: len(full.items)]})
    with pytest.raises(LabError, match="region made is damaged"):
        replay_hierarchy(damaged, placed, layouts, l1i=L1I, l1d=L1I, l2=BIG)


def test_the_second_level_knows_physical_lines_alone() -> None:
    """Two blocks that follow each other lie apart in memory, and the data lies where they do."""
    blocks = [Block(0, 0, 64), Block(0, 64, 64)]
    trace, placed = make_trace(blocks, [[0, 1]], [(0, OWN)] * 10)
    full = msgspec.structs.replace(
        trace,
        items=np.array([0, 1, DATA, DATA | 1], dtype=np.uint32),
        starts=np.array([0, 4], dtype=np.uint64),
        physical=np.array([0, 128], dtype=np.uint64),
        data_virtual=np.array([4096, 8192], dtype=np.uint64),
        data_physical=np.array([128, 0], dtype=np.uint64),
        data_stores=np.zeros(2, dtype=np.bool_),
    )
    one, two = (Cache(sets=1, ways=n, line_bytes=64) for n in (1, 2))
    layout = np.zeros((1, 1), dtype=np.uint64)
    found = replay_hierarchy(full, placed, layout, l1i=one, l1d=one, l2=two)
    assert (found.l1i.total.sum(), found.l1d.sum(), l2_total(found).sum()) == (20, 20, 0)
    # Where the function goes, its physical address goes.
    moved = replay_hierarchy(full, placed, layout + np.uint64(64), l1i=one, l1d=one, l2=two)
    assert (moved.l1i.total.sum(), moved.l1d.sum(), l2_total(moved).sum()) == (20, 20, 40)


@pytest.mark.parametrize(
    ("virtual", "physical", "misses"),
    [
        ([0, 64], [0, 128], 0),  # in two sets
        ([0, 128], [0, 64], 20),  # in one set
        ([0, 128], [256, 256], 0),  # one line under two names in one set
        ([0, 64], [256, 256], 0),  # and in two sets, of which neither knows of the other
    ],
)
def test_data_is_indexed_by_virtual_and_tagged_by_physical_addresses(
    virtual: list[int], physical: list[int], misses: int
) -> None:
    trace, placed = make_trace([Block(0, 0, 4)], [[0]], [(0, OWN)] * 10)
    full = msgspec.structs.replace(
        trace,
        items=np.array([0, DATA, DATA | 1], dtype=np.uint32),
        starts=np.array([0, 3], dtype=np.uint64),
        physical=np.array([4096], dtype=np.uint64),
        data_virtual=np.array(virtual, dtype=np.uint64),
        data_physical=np.array(physical, dtype=np.uint64),
        data_stores=np.zeros(2, dtype=np.bool_),
    )
    prepared = PreparedHierarchy(full, placed, Cache(sets=2, ways=1, line_bytes=64))
    found = prepared.replay(np.zeros((1, 1), dtype=np.uint64), l1i=L1I, l2=BIG)
    assert found.l1d.tolist() == [misses, 0, 0]
