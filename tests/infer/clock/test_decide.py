# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts on clock times: their symmetry, their intervals and how many operations share one."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kdelta.infer.clock.decide import ALPHA, ClockVerdict, decide, decide_all
from kdelta.infer.clock.e_values import log_e_values
from kdelta.infer.effects.effects import FIRM, Word

MARGIN = 0.01
MIRRORED = {Word.SLOWER: Word.FASTER, Word.FASTER: Word.SLOWER}


@st.composite
def series(draw: st.DrawFn, least: int = 1) -> list[float]:
    """Differences of some effect and noise, with outliers or a few values only."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    pairs = draw(st.integers(least, 40))
    effect = draw(st.sampled_from([0.0, 0.005, 0.02, -0.02, -0.1]))
    noise = random.standard_t(3, pairs) if draw(st.booleans()) else random.integers(-1, 2, pairs)
    return [float(one) for one in effect + 0.01 * noise]


@given(series(), st.sampled_from([0.01, 0.05]))
def test_swapping_the_kernels_mirrors_the_verdict(differences: list[float], alpha: float) -> None:
    found = decide(differences, MARGIN, alpha)
    mirrored = decide([-one for one in differences], MARGIN, alpha)
    assert mirrored.word == MIRRORED.get(found.word, found.word)
    assert (mirrored.e_value, mirrored.more_pairs) == (found.e_value, found.more_pairs)
    assert 1 + mirrored.effect == pytest.approx(1 / (1 + found.effect))
    assert 1 + mirrored.low == pytest.approx(1 / (1 + found.high))
    assert 1 / (1 + mirrored.high) == pytest.approx(1 + found.low)


@given(series(), st.sampled_from([1e-6, 1e-3, 8.0]))
def test_scale_changes_the_interval_alone(differences: list[float], scale: float) -> None:
    found = decide(differences, MARGIN)
    scaled = decide([scale * one for one in differences], MARGIN)
    assert scaled.e_value == pytest.approx(found.e_value, rel=1e-6)
    ends = [scale * math.log1p(end) if end > -1 else -math.inf for end in (found.low, found.high)]
    assert [math.expm1(end) for end in ends] == pytest.approx([scaled.low, scaled.high], rel=1e-6)


@given(series(least=7))
def test_wider_margin_makes_more_the_same_and_changes_nothing_else(
    differences: list[float],
) -> None:
    found = [decide(differences, margin) for margin in (0.001, 0.01, 0.1, 0.9)]
    words = [one.word for one in found]
    assert len({(one.low, one.high, one.e_value) for one in found}) == 1
    firm = words[0] in FIRM
    same = [word is Word.SAME for word in words]
    assert same == sorted(same)
    assert not (firm and any(same))
    assert all(word in FIRM for word in words) or not any(word in FIRM for word in words)


@given(series(least=7))
def test_word_follows_from_the_interval(differences: list[float]) -> None:
    found = decide(differences, MARGIN)
    assert (found.word is Word.SLOWER) == (found.low >= 0 and found.e_value >= 1 / ALPHA)
    assert (found.word is Word.FASTER) == (found.high <= 0 and found.e_value >= 1 / ALPHA)
    assert found.low <= found.effect <= found.high
    if found.word is Word.SAME:
        assert -MARGIN <= found.low <= found.high <= MARGIN


@given(series(least=7))
def test_interval_has_all_effects_that_are_not_excluded(differences: list[float]) -> None:
    found = decide(differences, MARGIN)
    ends = (min(differences), max(differences))
    far = ends[1] - ends[0] + 1e-9
    effects = np.linspace(ends[0] - 3 * far, ends[1] + 3 * far, 4001)
    log_e = log_e_values(np.array(differences) - effects[:, None])[:, -1]
    held = np.expm1(effects[log_e < -math.log(ALPHA)])
    assert ((found.low <= held) & (held <= found.high)).all()
    step = 4 * (effects[1] - effects[0])
    if len(held) and found.low > -1:
        assert math.log1p(found.low) >= math.log1p(held[0]) - step
    if len(held) and math.isfinite(found.high):
        assert math.log1p(found.high) <= math.log1p(held[-1]) + step


@pytest.mark.parametrize("pairs", range(1, 7))
def test_fewer_than_seven_pairs_decide_nothing(pairs: int) -> None:
    found = decide([0.5] * pairs, MARGIN)
    assert (found.word, found.low, found.high) == (Word.UNRESOLVED, -1.0, math.inf)
    assert found.more_pairs == (7 - pairs if pairs >= 4 else None)


def test_seven_pairs_of_one_sign_are_a_difference() -> None:
    found = decide([0.5] * 7, MARGIN)
    assert found.word is Word.SLOWER
    assert found.effect == pytest.approx(math.expm1(0.5))
    assert (found.low, found.high) == pytest.approx((found.effect, found.effect), rel=1e-4)
    assert found.e_value == pytest.approx((37.78 + 26.81) / 2, rel=1e-3)
    assert (found.alpha, found.pairs, found.more_pairs) == (ALPHA, 7, None)
    assert decide([-0.5, -0.51, -0.5, -0.52, -0.49, -0.5, -0.5], MARGIN).word is Word.FASTER


def test_pairs_without_any_difference_are_the_same() -> None:
    found = decide([0.0] * 7, MARGIN)
    assert (found.word, found.effect, found.e_value) == (Word.SAME, 0.0, 1.0)


def test_effect_that_changes_in_between_is_unresolved() -> None:
    noise = 0.001 * np.random.default_rng(1).standard_normal(60)
    differences = (np.array([0.04] * 10 + [-0.04] * 50) + noise).tolist()
    found = decide(differences, MARGIN)
    assert (found.word, found.low, found.high) == (Word.UNRESOLVED, -1.0, math.inf)
    assert found.e_value == 1
    assert decide_all({"one": differences, "two": [0.0] * 7}, MARGIN)["one"].word == found.word


@given(series(least=7))
def test_forecast_is_when_the_pairs_again_decide(differences: list[float]) -> None:
    found = decide(differences, MARGIN)
    assume(len(set(differences)) == len(differences))
    if found.word is not Word.UNRESOLVED:
        assert found.more_pairs is None
    elif found.more_pairs and found.more_pairs < 200:
        more = np.resize(differences, len(differences) + found.more_pairs).tolist()
        assert decide(more, MARGIN).word is not Word.UNRESOLVED
        assert decide(more[:-1], MARGIN).word is Word.UNRESOLVED


def test_no_forecast_where_no_thousand_pairs_decide() -> None:
    assert decide([0.0101, 0.0099] * 4, 0.0101).more_pairs is None
    at_margin = np.random.default_rng(1).permutation(np.linspace(-0.2, 0.2, 20)).tolist()
    assert decide(at_margin, 1e-6).more_pairs is None


@pytest.mark.parametrize(
    ("differences", "margin", "alpha"),
    [
        ([], 0.01, 0.05),
        ([math.nan], 0.01, 0.05),
        ([1.0, math.inf], 0.01, 0.05),
        ([1.0], 0.0, 0.05),
        ([1.0], 1.0, 0.05),
        ([1.0], 0.01, 0.0),
        ([1.0], 0.01, 1.0),
    ],
)
def test_input_that_is_none_is_an_error(
    differences: list[float], margin: float, alpha: float
) -> None:
    with pytest.raises(ValueError, match=r"margin|alpha|pairs"):
        decide(differences, margin, alpha)


def slower_by(effect: float, pairs: int = 12, seed: int = 0) -> list[float]:
    """Differences of that effect and a noise of 1 %."""
    noise = np.random.default_rng(seed).standard_normal(pairs)
    return [float(one) for one in effect + 0.01 * noise]


@given(series())
def test_one_operation_alone_is_decided_as_by_decide(differences: list[float]) -> None:
    assert decide_all({"open": differences}, MARGIN) == {"open": decide(differences, MARGIN)}


def test_no_operation_has_no_verdict() -> None:
    assert decide_all({}, MARGIN) == {}


def test_one_weak_difference_of_many_operations_is_open() -> None:
    weak = [0.05] * 7
    alone = decide(weak, MARGIN)
    others = {f"op{index}": slower_by(0.0, seed=index) for index in range(20)}
    found = decide_all({"weak": weak, **others}, MARGIN)["weak"]
    assert alone.word is Word.SLOWER
    assert found.word is Word.UNRESOLVED
    assert (found.low, found.high, found.e_value) == (alone.low, alone.high, alone.e_value)
    assert found.more_pairs is not None


def test_discoveries_have_intervals_of_their_level() -> None:
    strong = {f"slow{index}": slower_by(0.05, 30, index) for index in range(4)}
    still = {f"op{index}": slower_by(0.0, 30, index) for index in range(4)}
    found = decide_all({**strong, **still}, MARGIN)
    assert all(found[name].word is Word.SLOWER for name in strong)
    assert {found[name].alpha for name in strong} == {ALPHA / 2}
    for name, differences in strong.items():
        assert _ends(found[name]) == _ends(decide(differences, MARGIN, ALPHA / 2))
    for name, differences in still.items():
        assert _ends(found[name]) == _ends(decide(differences, MARGIN))


def _ends(verdict: ClockVerdict) -> tuple[float, float, float]:
    return verdict.low, verdict.high, verdict.alpha
