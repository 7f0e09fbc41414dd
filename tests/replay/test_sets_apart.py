# SPDX-License-Identifier: GPL-2.0-or-later
"""Code that is larger than the cache: what is kept has sets to itself."""

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pytest

from kdelta.counts.arrays import U64
from kdelta.counts.trace import Trace
from kdelta.cpus.model import Cache
from kdelta.replay.functions import Placement
from kdelta.replay.layouts import ordered
from kdelta.replay.order import ANNEALED, SETS_APART, Further, PlaceResult, place_in_order
from kdelta.replay.search import CaseJudge, Misses, Start, WeightedRegion
from kdelta.replay.sets_apart import sets_apart
from kdelta.replay.units import units_of
from tests.replay.kernels import Call, cpu_of, lines, placed, region
from tests.replay.made_kernel import Row, text_rows
from tests.replay.same_layout import assert_same_layout

CPU = cpu_of(16, 2)
HOT = [f"h{index}" for index in range(48)]
COLD = {f"c{index}": 1 for index in range(400)}


def start_of(
    rows: list[Row],
    trace: Trace,
    cpu_cache: Cache | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Start | None:
    placement, cpu = placed(rows, trace, sizes=sizes), CPU
    units = units_of(placement)
    judge = CaseJudge([WeightedRegion(trace)], units, cpu, {"l1i": cpu.l1i})
    order = np.arange(len(units.names))
    return sets_apart(placement, units, judge, order, cpu_cache or cpu.l1i)


def sets_of(placement: Placement, start: Start, names: list[str]) -> dict[str, int]:
    layout = ordered(placement, start.units.order(start.order.tolist()))[0]
    return {name: int(layout[placement.indexes[name][0]]) // 64 % 16 for name in names}


def test_a_loop_larger_than_the_cache_keeps_what_sets_but_one_hold() -> None:
    """Each of its 48 lines misses in any order without gaps: three lie in each set of two ways."""
    rows = lines(**dict.fromkeys(HOT, 1), **COLD)
    trace = region(rows, HOT, times=20)
    placement = placed(rows, trace)
    start = start_of(rows, trace)
    assert start is not None
    units = start.units
    judge = CaseJudge([WeightedRegion(trace)], units, CPU, {"l1i": CPU.l1i})
    together = judge.misses(units.layouts([np.arange(len(units.names))]))["l1i"]
    apart = judge.misses(units.layouts([start.order]))["l1i"]
    assert together.item() == 48 * 20
    assert apart.item() == 18 * 20
    found = Counter(sets_of(placement, start, HOT).values())
    assert found == {**dict.fromkeys(range(15), 2), 15: 18}
    assert_same_layout(placement, units, start.order)


def test_what_is_used_most_is_kept() -> None:
    """Half of the functions are called twice a round, with all others between."""
    rows = lines(**dict.fromkeys(HOT, 1), **COLD)
    busy = HOT[1::2]
    calls: list[Call] = [*HOT, *busy]
    placement = placed(rows, region(rows, calls, times=20))
    start = start_of(rows, region(rows, calls, times=20))
    assert start is not None
    where = sets_of(placement, start, HOT)
    shared = Counter(where.values())
    assert all(shared[where[name]] <= 2 for name in busy)


def test_what_fills_is_never_executed_and_in_the_order_once() -> None:
    rows = text_rows(
        {
            **{name: 40 + 7 * at for at, name in enumerate(HOT)},
            **{name: 16 + 8 * at for at, name in enumerate(COLD)},
        }
    )
    # Two functions of one name: to name it would move both.
    rows = [(at, kind, "c7" if name == "c8" else name) for at, kind, name in rows]
    trace = region(rows, HOT, times=5)
    start = start_of(rows, trace)
    assert start is not None
    names = start.units.order(start.order.tolist())
    assert len(set(names)) == len(names)
    assert set(HOT) < set(names)
    assert set(names) - set(HOT) <= set(COLD) - {"c7", "c8"}
    assert names[-1] in HOT
    assert sorted(start.order.tolist()) == list(range(len(start.units.names)))
    assert_same_layout(placed(rows, trace), start.units, start.order)


def test_code_without_a_name_fills_nothing_nor_what_follows_it() -> None:
    rows = lines(**dict.fromkeys(HOT, 1), **dict.fromkeys(COLD, 2))
    cold = list(COLD)
    start = start_of(rows, region(rows, HOT, times=5), sizes=dict.fromkeys(cold[::3], 8))
    assert start is not None
    names = set(start.units.order(start.order.tolist()))
    assert set(HOT) < names
    assert names <= {*HOT, *COLD}
    assert names.isdisjoint(cold[1::3])


def test_a_function_larger_than_what_its_part_has_is_placed_all_the_same() -> None:
    sizes = dict.fromkeys(HOT, 1) | {"h3": 20, "h4": 40}
    rows = lines(**sizes, **COLD)
    start = start_of(rows, region(rows, HOT, times=5))
    assert start is not None
    assert {"h3", "h4"} <= set(start.units.order(start.order.tolist()))


@pytest.mark.parametrize(
    ("count", "cache"),
    [(32, CPU.l1i), (48, Cache(8, 4, 64))],
    ids=["all of it fits", "too few sets to part"],
)
def test_where_there_is_nothing_to_part(count: int, cache: Cache) -> None:
    rows = lines(**dict.fromkeys(HOT[:count], 1), **COLD)
    assert start_of(rows, region(rows, HOT[:count], times=5), cache) is None


def test_without_anything_that_fills_it_is_an_order_of_the_same_units() -> None:
    rows = lines(**dict.fromkeys(HOT, 1), cold=300)
    start = start_of(rows, region(rows, HOT, times=5))
    assert start is not None
    assert start.units.executed == len(start.units.names) == len(HOT)
    assert sorted(start.order.tolist()) == list(range(len(HOT)))


def test_sets_that_cost_too_much_in_another_cache_are_not_kept() -> None:
    """What is left out has one set in sixteen: a second level of like sets is told to miss it."""
    rows = lines(**dict.fromkeys(HOT, 1), **COLD)
    trace = region(rows, HOT, times=20)
    placement = placed(rows, trace)
    hot = [placement.indexes[name][0] for name in HOT]

    def further(layouts: U64) -> Misses:
        sets = layouts[:, hot] // np.uint64(64) % np.uint64(16)
        most = [[np.bincount(row.astype(np.int64)).max() for row in sets]]
        return {"l2": 20 * np.array(most, dtype=np.int64)}

    def order(further: Further | None) -> PlaceResult:
        return place_in_order(
            placement, [WeightedRegion(trace)], CPU, evaluations=40, layouts=4, further=further
        )

    blind, seeing = order(None), order(further)
    assert blind.padding
    assert blind.method in {SETS_APART, ANNEALED}
    (row,) = seeing.regions
    assert row.methods[SETS_APART]["l2"] == 20 * 18
    assert row.methods[seeing.method]["l2"] < 20 * 18
    assert seeing.costs[SETS_APART] > seeing.costs[seeing.method]
    assert seeing.padding == ()
    # The search did not begin with them.
    assert row.methods[ANNEALED]["l2"] < 20 * 18
    assert set(row.ensemble) == {"l1i", "itlb", "l2"}
