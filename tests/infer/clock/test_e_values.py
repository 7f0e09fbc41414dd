# SPDX-License-Identifier: GPL-2.0-or-later
"""E-values: closed forms against integrals, and their means under what they speak against."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.infer.clock.e_values import (
    Floats,
    discoveries,
    log_coin_t,
    log_e_values,
    log_signs,
    log_t_mixture,
)

SERIES = (
    (0.3, -0.1, 0.4, 0.2),
    (1.0, 1.0, 1.0),
    (-2.0, 0.5, -1.0, -3.0, 0.1, -0.7),
    (0.0, 1.0, -1.0, 4.0),
)
sizes = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=9)


def plain_t(differences: Floats) -> Floats:
    """The t mixture's e-values, without a coin."""
    pairs = np.arange(1.0, differences.shape[-1] + 1)
    sums, squares = np.cumsum(differences, axis=-1), np.cumsum(differences**2, axis=-1)
    found: Floats = np.exp(log_t_mixture(pairs, sums, squares))
    return found


def of_all_signs(magnitudes: list[float]) -> Floats:
    """Series of these magnitudes, a row for each choice of signs."""
    signs = itertools.product((-1.0, 1.0), repeat=len(magnitudes))
    found: Floats = np.array(list(signs)) * np.array(magnitudes)
    return found


def marginal(series: tuple[float, ...], *, mixed: bool) -> float:
    """The density of a series, but for a factor: its integral over the spread's logarithm and, if
    mixed, over the effect in standard deviations, N(0, 1).
    """
    log_spread = np.linspace(-9, 9, 601)
    effects = np.linspace(-8, 8, 321) if mixed else np.zeros(1)
    spread = np.exp(log_spread)[:, None]
    log_density = sum(
        -0.5 * ((x - effects * spread) / spread) ** 2 - np.log(spread) for x in series
    )
    prior = np.exp(-(effects**2) / 2)
    return float((np.exp(log_density) * prior).sum() / prior.sum())


@pytest.mark.parametrize("series", SERIES)
def test_t_mixture_is_the_ratio_of_integrals(series: tuple[float, ...]) -> None:
    ratio = marginal(series, mixed=True) / marginal(series, mixed=False)
    assert plain_t(np.array(series))[-1] == pytest.approx(ratio, rel=1e-4)


@pytest.mark.parametrize("series", SERIES)
def test_coin_t_multiplies_by_what_the_mixture_predicts_of_either_sign(
    series: tuple[float, ...],
) -> None:
    right = 1.0
    for pairs in range(1, len(series) + 1):
        as_found = marginal(series[:pairs], mixed=True)
        mirrored = marginal((*series[: pairs - 1], -series[pairs - 1]), mixed=True)
        right *= 2 * as_found / (as_found + mirrored)
    assert math.exp(log_coin_t(np.array(series))[-1]) == pytest.approx(right, rel=1e-4)


@pytest.mark.parametrize(("positive", "negative"), [(0, 1), (3, 0), (5, 2), (8, 8), (0, 20)])
def test_sign_mixture_is_the_integral_over_the_share(positive: int, negative: int) -> None:
    angle = (np.arange(20_000) + 0.5) * math.pi / 40_000
    share = np.sin(angle) ** 2  # of Beta(1/2, 1/2) where the angle is uniform
    right = np.mean((2 * share) ** positive * (2 * (1 - share)) ** negative)
    found = math.exp(log_signs(np.array([1.0] * positive + [-1.0] * negative))[-1])
    assert found == pytest.approx(right, rel=1e-6)


@pytest.mark.parametrize("pairs", [5, 8, 30])
@pytest.mark.parametrize("alpha", [0.05, 0.001])
def test_t_mixture_reaches_its_bound_where_the_confidence_sequence_ends(
    pairs: int, alpha: float
) -> None:
    c, nu = 1 / (1 + pairs), pairs - 1
    g = (math.sqrt(1 + pairs) / alpha) ** (2 / (nu + 1))
    if c * g >= 1:
        assert plain_t(np.ones(pairs))[-1] < 1 / alpha
        return
    t = math.sqrt(nu * (g - 1) / (1 - c * g))
    # a mean of 1 and a variance of pairs / t^2
    spread = math.sqrt(pairs) / t
    squares = pairs + nu * spread**2
    found = log_t_mixture(np.array(float(pairs)), np.array(float(pairs)), np.array(squares))
    assert math.exp(found) == pytest.approx(1 / alpha)


@pytest.mark.parametrize("pairs", [2, 3, 7, 20])
def test_t_mixture_has_mean_one_of_normal_differences(pairs: int) -> None:
    nu = pairs - 1
    angle = (np.arange(400_000) + 0.5) * math.pi / 400_000 - math.pi / 2
    square = np.tan(angle) ** 2  # t^2 / nu
    density = np.cos(angle) ** (nu - 1)  # of the angle, but for a factor
    sums = np.sqrt(pairs * square / (1 + square))
    e_values = np.exp(log_t_mixture(np.array(float(pairs)), sums, np.ones_like(sums)))
    assert np.sum(e_values * density) / np.sum(density) == pytest.approx(1, rel=1e-3)


@given(sizes)
def test_mean_over_all_signs_is_one_at_each_pair(magnitudes: list[float]) -> None:
    e_values = np.exp(log_e_values(of_all_signs(magnitudes)))
    assert e_values.mean(axis=0) == pytest.approx(np.ones(len(magnitudes)))


@given(sizes, st.integers(0, 2**32 - 1))
def test_next_pair_of_either_sign_adds_nothing_in_the_mean(
    magnitudes: list[float], seed: int
) -> None:
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], len(magnitudes))
    series = signs * np.array(magnitudes)
    both = np.array([[*series, 2.5], [*series, -2.5]])
    e_values = np.exp(log_e_values(both))
    assert e_values[:, -1].mean() == pytest.approx(e_values[0, -2])


def test_plain_t_mixture_is_no_e_value_of_equal_magnitudes() -> None:
    e_values = plain_t(of_all_signs([1.0] * 5))
    assert e_values[-1, -1] == pytest.approx(36)
    assert e_values.mean(axis=0)[3] > 1.9
    assert (e_values.max(axis=1) >= 20).mean() == 1 / 16


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=20), st.floats(1e-6, 1e6))
def test_e_values_depend_neither_on_scale_nor_on_sign(series: list[float], scale: float) -> None:
    differences = np.array([0.0 if abs(one) < 1e-6 else one for one in series])
    for own in (log_coin_t, log_signs, log_e_values):
        assert own(scale * differences) == pytest.approx(own(differences), abs=1e-6)
        assert own(-differences).tolist() == own(differences).tolist()


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=20), st.randoms())
def test_signs_do_not_depend_on_the_order_of_pairs(series: list[float], random: object) -> None:
    shuffled = list(series)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    found = log_signs(np.array([series, shuffled]))[:, -1]
    assert found[0] == pytest.approx(found[1])


def test_no_difference_says_nothing() -> None:
    assert log_e_values(np.zeros((1, 10))).tolist() == [[0.0] * 10]


@given(st.lists(st.floats(0.01, 1e5), max_size=12), st.sampled_from([0.01, 0.05, 0.5]))
def test_discoveries_are_the_most_that_are_strong_enough(
    e_values: list[float], alpha: float
) -> None:
    count = len(e_values)
    right = max(
        k
        for k in range(count + 1)
        if k == 0 or sum(e >= count / (k * alpha) for e in e_values) >= k
    )
    assert discoveries(np.log(np.array(e_values, dtype=float)), alpha) == right
