# SPDX-License-Identifier: GPL-2.0-or-later
"""Means with intervals, by properties: they add up, and hold what runs of kernels could be."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.infer.effects.estimate import (
    NARROW,
    STEADY,
    Adds,
    Estimate,
    adds,
    bound,
    is_seen,
    is_steady,
    mean_percent,
    share_percent,
    total,
    variation,
    widest,
)


def figure(value: int | Fraction, reach: int | Fraction = 0) -> Estimate:
    return Estimate(Fraction(value), Fraction(value) - reach, Fraction(value) + reach, 3)


FIGURES = st.integers(-1000, 1000).map(Fraction)
REACHES = st.integers(0, 300).map(Fraction)
REGIONS = ("open", "stat", "fork")


@st.composite
def estimates(draw: st.DrawFn) -> Estimate:
    value, below, above = draw(FIGURES), draw(REACHES), draw(REACHES)
    return Estimate(value, value - below, value + above, 3)


EFFECTS = st.fixed_dictionaries({name: estimates() for name in REGIONS})
COSTS = st.fixed_dictionaries({name: st.integers(1, 5000).map(figure) for name in REGIONS})


@given(EFFECTS, COSTS, st.lists(st.fractions(0, 1), min_size=3, max_size=3))
def test_a_mean_holds_the_mean_of_any_figures_in_the_intervals(
    effects: dict[str, Estimate], costs: dict[str, Estimate], at: list[Fraction]
) -> None:
    mean = mean_percent(effects, costs)
    assert mean is not None
    truth = {
        name: one.low + part * (one.high - one.low)
        for (name, one), part in zip(effects.items(), at, strict=True)
    }
    of_truth = sum(100 * truth[name] / costs[name].value for name in REGIONS) / len(REGIONS)
    assert mean.low <= of_truth <= mean.high
    assert mean.low <= mean.value <= mean.high


@given(EFFECTS, EFFECTS, COSTS)
def test_means_of_parts_add_up_to_the_mean_of_their_sum(
    one: dict[str, Estimate], other: dict[str, Estimate], costs: dict[str, Estimate]
) -> None:
    both = {name: total([one[name], other[name]], 3) for name in REGIONS}
    means = [mean_percent(effects, costs) for effects in (one, other, both)]
    known = [mean for mean in means if mean is not None]
    assert len(known) == 3
    assert known[0].value + known[1].value == known[2].value
    assert known[0].low + known[1].low == known[2].low
    assert known[0].high + known[1].high == known[2].high


@given(EFFECTS, COSTS)
def test_a_mean_of_the_opposite_is_the_opposite(
    effects: dict[str, Estimate], costs: dict[str, Estimate]
) -> None:
    mean = mean_percent(effects, costs)
    opposite = mean_percent({name: -one for name, one in effects.items()}, costs)
    assert mean is not None
    assert opposite == -mean


def test_a_mean_without_a_region_is_none() -> None:
    assert mean_percent({"open": figure(3)}, {}) is None


@given(estimates(), estimates())
def test_a_share_holds_the_quotient_of_any_figures(part: Estimate, whole: Estimate) -> None:
    share = share_percent(part, whole)
    if not is_seen(whole):
        assert share is None
        return
    assert share is not None
    for one in (part.low, part.value, part.high):
        for other in (whole.low, whole.value, whole.high):
            assert share.low <= 100 * one / other <= share.high


@given(estimates())
def test_a_bound_is_as_far_as_the_interval_reaches(effect: Estimate) -> None:
    assert bound(effect) == max(abs(effect.low), abs(effect.high))
    assert is_seen(effect) is (effect.low > 0 or effect.high < 0)


@pytest.mark.parametrize(
    ("low", "high", "steady"), [(995, 1005, True), (994, 1005, False), (1000, 1000, True)]
)
def test_a_region_is_steady_if_runs_vary_by_one_per_cent_at_most(
    low: int, high: int, *, steady: bool
) -> None:
    cost = Estimate(Fraction(1000), Fraction(low), Fraction(high), 3)
    assert is_steady(cost) is steady
    assert Fraction(1, 100) == STEADY


def test_the_kernel_whose_runs_vary_most_is_told_by_its_part_not_its_size() -> None:
    large, small = figure(100_000, 500), figure(100, 2)
    assert widest([large, small]) is small
    assert variation(figure(0, 1)) == 1
    assert variation(figure(0)) == 0


@pytest.mark.parametrize(
    ("rest", "word"),
    [
        (figure(0), Adds.ADDS_UP),
        (figure(1, 1), Adds.ADDS_UP),
        (figure(1, Fraction(101, 100)), Adds.CANNOT_TELL),
        (figure(600, 610), Adds.CANNOT_TELL),
        (figure(2, 1), Adds.LEFT_OVER),
    ],
)
def test_a_remainder_adds_up_only_if_it_may_be_zero_and_is_narrow(
    rest: Estimate, word: Adds
) -> None:
    """The region costs 1,000: 0.2 % of that is 2."""
    assert adds(rest, figure(1000)) is word
    assert Fraction(2, 1000) == NARROW
