# SPDX-License-Identifier: GPL-2.0-or-later
"""Not slower in what is counted, whatever the prices are; and the interval that decides."""

import math

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kdelta.cpus.model import MissPrice, Price
from kdelta.infer.cycles.ensembles import Ensemble, Interval, RegionCost
from kdelta.infer.cycles.placement_model import CodeChange, PlacementEffect
from kdelta.infer.cycles.prices import Prices
from kdelta.infer.effects.effects import Word
from tests.infer.drawn import amount, cost, effect, priced

WIDE = Prices(
    {"insns": Price(0.5, 0.5), "verw": Price(10, 160)},
    {"l1i": MissPrice(0, 14, False), "itlb": MissPrice(0, 8, False)},
)
MARGIN = 0.01
CLOSE = 1e-9
"""An interval's end is found by iteration, so it is as good as that."""

NEVER_SLOWER = {Word.NOT_SLOWER, Word.FASTER, Word.SAME, Word.PLACEMENT_ONLY}


def region(
    insns: int, l1i: float | list[float], *, first_draw: int = 0, **specials: int
) -> RegionCost:
    """A region with that many L1I misses in each layout, and as many of eight where it is one."""
    rows = l1i if isinstance(l1i, list) else [l1i] * 8
    found = cost(insns, {"l1i": rows, "itlb": [1.0] * len(rows)}, first_draw=first_draw)
    more = {kind: amount(count) for kind, count in specials.items()}
    return msgspec.structs.replace(found, executed={**found.executed, **more})


# By hand.


def test_all_counts_fall_and_prices_decide_by_how_much_is_not_slower() -> None:
    found = effect(region(1000, 20.0), region(999, 15.0), WIDE)
    assert found.verdict.word is Word.NOT_SLOWER
    assert found.verdict.reason == (
        "nothing that is counted grows; not called faster, since it depends on what a miss costs; "
        "this CPU's file has no measured cost of l1i, itlb"
    )
    assert found.cycles == Interval(-70.5, -0.5)
    assert found.within_bound


def test_all_counts_grow_is_not_slower_by_more_than_the_margin_is_unresolved() -> None:
    found = effect(region(999, 15.0), region(1000, 20.0), WIDE)
    assert found.verdict.word is Word.UNRESOLVED
    assert not found.within_bound


@pytest.mark.parametrize(
    "other",
    [
        region(1001, 15.0),
        region(999, [15.0] * 7 + [61.0]),
        region(999, 15.0, verw=1),
        region(999, 15.0, hlt=1),
    ],
    ids=["instructions", "misses in one layout", "special with a price", "special without a price"],
)
def test_one_count_that_grows_leaves_it_unresolved(other: RegionCost) -> None:
    found = effect(region(1000, 20.0), other, WIDE)
    assert found.verdict.word is Word.UNRESOLVED


def test_counts_that_may_grow_by_the_runs_spread_leave_it_unresolved() -> None:
    base, other = region(1000, 20.0), region(999, 15.0)
    moved = msgspec.structs.replace(other, executed={"insns": amount(999, 2)})
    assert effect(base, other, WIDE).verdict.word is Word.NOT_SLOWER
    assert effect(base, moved, WIDE).verdict.word is Word.UNRESOLVED


def test_counts_all_beyond_the_margin_is_faster() -> None:
    assert effect(region(1000, 20.0), region(900, 15.0), WIDE).verdict.word is Word.FASTER


def test_a_special_without_a_price_that_grows_is_named() -> None:
    found = effect(region(1000, 20.0), region(999, 15.0, hlt=1), WIDE)
    assert found.grows_unpriced == ("hlt",)
    fewer = effect(region(1000, 20.0, hlt=1), region(999, 15.0), WIDE)
    assert (tuple(fewer.unpriced), fewer.grows_unpriced) == (("hlt",), ())
    assert fewer.verdict.word is Word.NOT_SLOWER
    assert effect(region(1, 1.0, verw=1), region(1, 1.0, verw=2), WIDE).unpriced == {}


def test_one_run_on_a_side_has_no_interval() -> None:
    once = msgspec.structs.replace(region(999, 15.0), executed={"insns": amount(999, n=1)})
    found = effect(region(1000, 20.0), once, WIDE)
    assert found.verdict.word is Word.UNRESOLVED
    assert found.relative == Interval(-1, math.inf)
    assert found.cycles == Interval(-math.inf, math.inf)
    assert not found.within_bound


def test_the_same_code_in_one_run_has_an_interval() -> None:
    once = cost(amount(1000, n=1), {})
    found = effect(once, once, priced(1), code=CodeChange.RELINKED)
    assert (found.verdict.word, found.cycles) == (Word.SAME, Interval(0, 0))


# For any counts and prices.

ends = st.lists(st.floats(0, 20), min_size=2, max_size=2).map(sorted)
misses = st.builds(lambda both, known: MissPrice(both[0], both[1], known), ends, st.booleans())
intervals = st.builds(lambda both: Price(both[0], both[1]), ends)
some = st.floats(0.1, 4).map(lambda rate: Price(rate, rate))
prices = st.builds(
    Prices,
    st.fixed_dictionaries({"insns": some, "verw": intervals}),
    st.fixed_dictionaries({"l1i": misses, "itlb": misses}),
)
WIDE_PRICES = st.builds(
    lambda rate, exposed: Prices(
        {"insns": Price(rate, rate), "verw": Price(0, 100)},
        {kind: MissPrice(1, exposed, calibrated=False) for kind in ("l1i", "itlb")},
    ),
    st.floats(0.3, 1),
    st.floats(5, 20),
)
"""Those of a CPU whose misses were not measured."""

rows = st.lists(st.floats(0, 100), min_size=8, max_size=8)


@st.composite
def costs(draw: st.DrawFn) -> RegionCost:
    found = cost(
        draw(st.integers(1, 2000)),
        {"l1i": draw(rows), "itlb": draw(rows)},
        first_draw=draw(st.sampled_from([0, 100])),
    )
    special = {"verw": amount(draw(st.integers(0, 3)), draw(st.integers(0, 1)))}
    return msgspec.structs.replace(found, executed={**found.executed, **special})


@st.composite
def pairs(draw: st.DrawFn) -> tuple[RegionCost, RegionCost]:
    """Two kernels: as like as not the other has less of everything, or of all but one."""
    base = draw(costs())
    if draw(st.booleans()):
        return base, draw(costs())
    less = {
        kind: np.maximum(row - draw(st.floats(0, 20)), 0)
        for kind, row in base.ensemble.misses.items()
    }
    path = base.executed["insns"].value - draw(st.integers(-1, 20))
    other = msgspec.structs.replace(
        base,
        executed={**base.executed, "insns": amount(max(1, int(path)))},
        ensemble=Ensemble(base.ensemble.draws, less),
    )
    return base, other


@st.composite
def falling(draw: st.DrawFn) -> tuple[RegionCost, RegionCost]:
    """Two kernels of which the other has less of everything, by a path that is about the same."""
    base = draw(costs())
    base = msgspec.structs.replace(base, executed={**base.executed, "insns": amount(2000)})
    less = {kind: row * draw(st.floats(0, 0.9)) for kind, row in base.ensemble.misses.items()}
    other = msgspec.structs.replace(
        base,
        executed={"insns": amount(2000 - draw(st.integers(0, 5))), "verw": amount(0)},
        ensemble=Ensemble(base.ensemble.draws, less),
    )
    return base, other


def grows(base: RegionCost, other: RegionCost) -> bool:
    """Whether the other has more of anything, in the mean."""
    return any(
        other.amount(name).value > base.amount(name).value for name in other.executed
    ) or any(
        other.ensemble.misses[kind].mean() > row.mean() + CLOSE
        for kind, row in base.ensemble.misses.items()
    )


@given(pairs(), prices)
def test_what_grows_is_never_not_slower(
    pair: tuple[RegionCost, RegionCost], prices: Prices
) -> None:
    assume(grows(*pair))
    assert effect(*pair, prices).verdict.word is not Word.NOT_SLOWER


@given(falling(), WIDE_PRICES, prices)
@pytest.mark.slow
def test_not_slower_holds_at_any_other_prices(
    pair: tuple[RegionCost, RegionCost], wide: Prices, others: Prices
) -> None:
    assume(effect(*pair, wide).verdict.word is Word.NOT_SLOWER)
    found = effect(*pair, others)
    assert found.verdict.word in NEVER_SLOWER
    assert found.cycles.high <= 1e-6


@given(pairs(), prices, st.floats(0.001, 0.5))
def test_the_interval_that_is_shown_is_the_one_that_decides(
    pair: tuple[RegionCost, RegionCost], prices: Prices, margin: float
) -> None:
    found = effect(*pair, prices, margin)
    low, high = found.relative.low, found.relative.high
    assume(math.isfinite(high))  # the base is known to cost anything
    least = 1 / (1 + margin) - 1
    word = found.verdict.word
    if word is Word.SLOWER:
        assert low > margin - CLOSE
    elif word is Word.FASTER:
        assert high < least + CLOSE
    elif word in {Word.SAME, Word.PLACEMENT_ONLY}:
        assert low >= least - CLOSE
        assert high <= margin + CLOSE
    else:
        assert low <= margin + CLOSE
        assert high >= least - CLOSE
        assert low < least + CLOSE or high > margin - CLOSE
        assert word is Word.UNRESOLVED or high <= CLOSE


@given(falling(), WIDE_PRICES)
def test_swapping_not_slower_is_unresolved(
    pair: tuple[RegionCost, RegionCost], prices: Prices
) -> None:
    found: PlacementEffect = effect(*pair, prices)
    assume(found.verdict.word is Word.NOT_SLOWER)
    back = effect(pair[1], pair[0], prices)
    assert back.verdict.word is Word.UNRESOLVED
    assert back.verdict.layouts == found.verdict.layouts
