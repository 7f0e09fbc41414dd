# SPDX-License-Identifier: GPL-2.0-or-later
"""What misses are laid to: against a cache written for clarity, and in a case made by hand."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.cpus.model import Cache
from kdelta.replay.collisions import CollidingPair, collisions
from kdelta.replay.simulate import PreparedTrace
from kdelta.spec.errors import UserError

from .traces import (
    L1I,
    OWN,
    Block,
    CacheContents,
    Made,
    caches,
    looping,
    made_traces,
    make_trace,
    replay,
    steps,
)

NOTHING = -1


def naive_collisions(made: Made, cache: Cache, *, warm: bool) -> Counter[tuple[int, int, int]]:
    """(set, function, evictor) -> misses of the first layout."""
    trace, placed, layouts = made
    held = CacheContents(cache)
    evictor: dict[int, int] = {}
    found: Counter[tuple[int, int, int]] = Counter()
    for measured in (False, True) if warm else (True,):
        for block, _ in steps(trace):
            function = int(placed.function[block])
            address = int(layouts[0, function]) + int(placed.offset[block])
            last = (address + int(trace.sizes[block]) - 1) // cache.line_bytes
            for line in range(address // cache.line_bytes, last + 1):
                where = line % cache.sets
                before = {one[0] for one in held.sets[where] if one}
                if held.misses(line, line) and measured:
                    found[where, function, evictor.get(line, NOTHING)] += 1
                for out in before - {one[0] for one in held.sets[where] if one}:
                    evictor[out] = function
    return found


@given(made_traces(), caches, st.booleans())
def test_misses_are_laid_to_who_evicted_the_line(made: Made, cache: Cache, warm: bool) -> None:
    trace, placed, layouts = made
    found = collisions(PreparedTrace(trace, placed), layouts[0], cache, warm=warm)
    expected = naive_collisions(made, cache, warm=warm)
    rows = zip(*(c.tolist() for c in (found.sets, found.functions, found.evictors)), strict=True)
    assert dict(zip(rows, found.misses.tolist(), strict=True)) == {
        key: n for key, n in expected.items() if key[2] != NOTHING
    }
    assert found.first == sum(n for key, n in expected.items() if key[2] == NOTHING)
    assert found.misses.tolist() == sorted(found.misses.tolist(), reverse=True)
    total = replay(trace, placed, layouts[:1], cache, warm=warm).total.sum()
    assert found.by_set.sum() == total


def test_three_functions_in_a_set_of_two_ways() -> None:
    """Each is put out by the one after the next: the last touch before it comes again."""
    blocks = [Block(function, 0, 8) for function in range(4)]
    made = make_trace(blocks, [[0, 1, 2, 3, 3]], [(0, OWN)] * 10)
    layout = np.array([0, 256, 512, 64], dtype=np.uint64)
    found = collisions(PreparedTrace(*made), layout, Cache(sets=4, ways=2, line_bytes=64))
    assert found.by_set.tolist() == [30, 0, 0, 0]
    assert found.first == 0
    assert found.pairs() == (
        CollidingPair(0, 2, 10, (0,)),
        CollidingPair(1, 0, 10, (0,)),
        CollidingPair(2, 1, 10, (0,)),
    )
    assert found.pairs(1) == (CollidingPair(0, 2, 10, (0,)),)


def test_a_pair_is_summed_over_its_sets() -> None:
    trace, placed, layouts = looping(20, noise=3)
    prepared = PreparedTrace(trace, placed)
    found = collisions(prepared, layouts[0], L1I)
    by_function = prepared.replay(layouts[:1], L1I).by_function
    assert by_function is not None
    pairs = found.pairs()
    assert [p.misses for p in pairs] == sorted((p.misses for p in pairs), reverse=True)
    assert any(len(p.sets) > 1 for p in pairs)
    for function in range(40):
        laid = sum(p.misses for p in pairs if p.function == function)
        assert laid == by_function[0, function]


def test_what_does_not_fit_is_refused() -> None:
    trace, placed, layouts = looping(2)
    prepared = PreparedTrace(trace, placed)
    with pytest.raises(ValueError, match="39 functions"):
        collisions(prepared, layouts[0, :39], L1I)
    with pytest.raises(UserError, match="cannot be replayed"):
        collisions(prepared, layouts[0], Cache(1 << 21, 1, 64))
