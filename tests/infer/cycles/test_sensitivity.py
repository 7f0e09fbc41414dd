# SPDX-License-Identifier: GPL-2.0-or-later
"""Distributions over layouts: what they say, and how they are priced."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.cpus.model import MissPrice, Price
from kdelta.infer.cycles.ensembles import Ensemble, Interval, RegionCost
from kdelta.infer.cycles.prices import INSNS, Prices
from kdelta.infer.cycles.sensitivity import cycle_range, distribution, percentile
from kdelta.infer.effects.estimate import estimate

PRICES = Prices(
    executed={INSNS: Price(0.5, 0.5), "lock": Price(10, 20)},
    misses={"l1i": MissPrice(1, 10, True), "itlb": MissPrice(0, 5, False)},
)
figures = st.lists(st.integers(0, 1000), min_size=1, max_size=50)


def _cost(l1i: list[float], shipped: float) -> RegionCost:
    return RegionCost(
        executed={INSNS: estimate([Fraction(200)]), "lock": estimate([Fraction(2)])},
        ensemble=Ensemble(
            tuple(range(len(l1i))),
            {"l1i": np.array(l1i, dtype=np.float64), "itlb": np.ones(len(l1i))},
        ),
        shipped={"l1i": shipped, "itlb": 2.0},
    )


@given(figures, st.integers(-10, 1010))
def test_a_distribution_is_in_order_and_tells_where_the_shipped_is(
    draws: list[int], shipped: int
) -> None:
    found = distribution(np.array(draws, dtype=np.float64), shipped)
    assert found.least == min(draws)
    assert found.most == max(draws)
    assert found.least <= found.quarter <= found.median <= found.three_quarters <= found.most
    assert found.mean == pytest.approx(sum(draws) / len(draws))
    less = sum(one < shipped for one in draws)
    same = sum(one == shipped for one in draws)
    assert found.percentile == pytest.approx((less + same / 2) / len(draws) * 100)
    assert found.varies == (len({*draws, shipped}) > 1)


def test_half_of_those_that_are_the_same_are_less() -> None:
    assert percentile(np.array([1.0, 2.0, 2.0, 3.0]), 2.0) == 50
    assert percentile(np.array([1.0, 2.0]), 3.0) == 100


def test_no_layout_no_distribution() -> None:
    with pytest.raises(ValueError, match="no layout"):
        distribution(np.zeros(0), 1.0)


def test_prices_are_intervals_of_what_is_executed_and_of_misses() -> None:
    found = cycle_range(_cost([0, 10, 20], 30), PRICES)
    assert found.executed == Interval(100 + 20, 100 + 40)
    assert found.as_linked == Interval(120 + 30, 140 + 300 + 10)
    assert found.least == Interval(120, 140 + 5)
    assert found.median == Interval(120 + 10, 140 + 100 + 5)
    assert found.most == Interval(120 + 20, 140 + 200 + 5)
    assert found.percentile == 100
    assert found.swing == pytest.approx(200 / (120 + 105))


def test_what_misses_nowhere_has_nothing_at_stake() -> None:
    found = cycle_range(_cost([7, 7, 7], 6.5), PRICES)
    assert found.swing == 0
    assert found.least == found.most
    assert found.percentile == 50  # half a line less, and a page more: that costs the same
