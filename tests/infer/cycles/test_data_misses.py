# SPDX-License-Identifier: GPL-2.0-or-later
"""Misses of data in model cycles: a part of what a path costs, the same in all layouts."""

from fractions import Fraction

import msgspec
import pytest

from kdelta.cpus.catalog import load_cpu
from kdelta.cpus.model import CPU, MISS_KINDS, MissPrice, Price
from kdelta.infer.cycles.ensembles import Interval, RegionCost
from kdelta.infer.cycles.placement_model import CodeChange
from kdelta.infer.cycles.prices import FIXED, L2, L2_CODE, L2_DATA, Prices, prices_of
from kdelta.infer.effects.effects import Word
from kdelta.infer.effects.estimate import Estimate
from tests.infer.drawn import cost, effect

LINES = MissPrice(2, 10, calibrated=True)


def cpu(**prices: MissPrice) -> CPU:
    """One with these prices of misses of data, and its own of misses of code."""
    base = load_cpu("zen4")
    of_code = {kind: base.misses[kind] for kind in MISS_KINDS if kind in base.misses}
    misses = {kind.replace("_", "-"): price for kind, price in prices.items()}
    return msgspec.structs.replace(base, misses=of_code | misses)


def with_data(one: RegionCost, **counts: float) -> RegionCost:
    amounts = {
        kind.replace("_", "-"): Estimate(Fraction(n), Fraction(n), Fraction(n), 3)
        for kind, n in counts.items()
    }
    return msgspec.structs.replace(one, executed=one.executed | amounts)


def flat(insns: int = 1000) -> RegionCost:
    return cost(insns, {"l1i": [0.0] * 8})


def prices(calibrated: bool = True) -> Prices:
    found = prices_of(cpu(l1d=msgspec.structs.replace(LINES, calibrated=calibrated)))
    return msgspec.structs.replace(
        found,
        executed={"insns": Price(1, 1), "l1d": found.executed["l1d"]},
        misses={"l1i": MissPrice(0, 1, calibrated=True)},
    )


def test_what_data_misses_more_is_slower_by_its_price() -> None:
    found = effect(with_data(flat(), l1d=10), with_data(flat(), l1d=30), prices())
    assert found.verdict.word is Word.SLOWER
    assert found.data_cycles == Interval(40, 200)
    assert found.cycles == Interval(40, 200)
    assert (found.data["l1d"].base.mean, found.data["l1d"].other.mean) == (10, 30)
    assert found.data["l1d"].effect.value == 20
    assert "l1d" not in found.misses
    assert found.without_measured_cost == ()


def test_fewer_misses_are_most_expensive_at_the_lowest_price() -> None:
    found = effect(with_data(flat(), l1d=30), with_data(flat(), l1d=10), prices())
    assert found.verdict.word is Word.FASTER
    assert found.data_cycles == Interval(-200, -40)


def test_a_price_that_nothing_measured_may_be_zero() -> None:
    found = effect(with_data(flat(), l1d=10), with_data(flat(), l1d=30), prices(calibrated=False))
    assert found.verdict.word is Word.UNRESOLVED
    assert found.verdict.reason.endswith("this CPU's file has no measured cost of l1d")
    assert found.without_measured_cost == ("l1d",)
    assert found.cycles == found.data_cycles == Interval(0, 200)


def test_a_kind_without_a_price_is_shown_and_costs_nothing() -> None:
    found = effect(with_data(flat(), dtlb=10), with_data(flat(), dtlb=30), prices())
    assert found.verdict.word is Word.SAME
    assert found.data["dtlb"].effect.value == 20
    assert found.data_cycles == Interval(0, 0)


def test_without_data_nothing_is_reported_of_it() -> None:
    found = effect(flat(), flat(), prices())
    assert (found.data, found.data_cycles) == ({}, None)


def test_the_same_path_is_the_same_wherever_data_lie() -> None:
    """The same code with another number of misses of data: no effect of a change."""
    sides = with_data(flat(), l1d=10), with_data(flat(), l1d=11)
    assert effect(*sides, prices(), code=CodeChange.SAME).verdict.word is Word.SAME


def test_prices_of_data_are_among_those_of_the_path() -> None:
    found = prices_of(cpu(l1d=LINES, dtlb_store=msgspec.structs.replace(LINES, calibrated=False)))
    assert found.executed["l1d"] == found.executed["dtlb-store"] == Price(2, 10)
    assert found.guesses == ("dtlb-store",)
    assert not set(FIXED) & found.misses.keys()
    assert L2 in found.misses


@pytest.mark.parametrize("stores", [True, False])
def test_the_l2_is_priced_by_whose_miss_it_is_where_that_is_known(stores: bool) -> None:
    more = {"l2_data_store": MissPrice(1, 50, calibrated=False)} if stores else {}
    model = cpu(l2_data=MissPrice(3, 30, calibrated=True), **more)
    found = prices_of(model).misses
    assert L2 not in found
    assert found[L2_CODE] == model.misses["l2"]
    assert found[L2_DATA] == (MissPrice(1, 50, False) if stores else MissPrice(3, 30, True))
