# SPDX-License-Identifier: GPL-2.0-or-later
"""How often verdicts on model cycles err, and what they find; seeded, so that it is always so."""

import math

import numpy as np
import pytest

from kdelta.infer.cycles.placement import placement_effects
from kdelta.infer.cycles.placement_model import CodeChange, ComparedRegion
from kdelta.infer.cycles.prices import Prices
from kdelta.infer.effects.effects import Word
from tests.infer.drawn import INSNS, NARROW, WIDE, cost, effect, priced, realistic

pytestmark = pytest.mark.long

LINKS = 12


@pytest.mark.slow
@pytest.mark.parametrize("prices", [NARROW, WIDE])
@pytest.mark.parametrize("code", list(CodeChange))
def test_of_66_pairs_of_links_of_one_source_none_is_slower_or_faster(
    prices: Prices, code: CodeChange
) -> None:
    """Each link with ensembles of its own draws, in three regions of different spread."""
    links = [
        [
            realistic(
                100 * link + region, INSNS * (region + 1), times=times, first_draw=1000 * link
            )
            for region, times in enumerate((0.1, 1.0, 4.0))
        ]
        for link in range(LINKS)
    ]
    words = []
    for left in range(LINKS):
        for right in range(left):
            pairs = zip(links[left], links[right], strict=True)
            regions = [ComparedRegion("op", base, other, code) for base, other in pairs]
            words += [one.verdict.word for one in placement_effects(regions, prices)]
    assert len(words) == 66 * 3
    assert not {Word.SLOWER, Word.FASTER} & set(words)
    if code is not CodeChange.DIFFERENT:
        assert set(words) == {Word.SAME, Word.PLACEMENT_ONLY}


def test_one_and_a_half_per_cent_are_found_with_the_default_number_of_layouts() -> None:
    """Two kernels that get like layouts from the same draws, as kernels with mostly the same
    functions do."""
    words = [
        effect(
            realistic(2 * seed),
            realistic(2 * seed + 1, INSNS * 1015 // 1000, times=1.015, like=2 * seed, alike=0.9),
        ).verdict.word
        for seed in range(40)
    ]
    assert words.count(Word.SLOWER) >= 38
    assert Word.FASTER not in words


@pytest.mark.slow
def test_a_wrong_word_is_rare_where_the_effect_is_just_the_margin() -> None:
    """There a verdict is most often wrong: the other kernel costs 1 + margin times the base."""
    prices = priced(0.5, l1i=(4, 4))
    wrong = 0
    for seed in range(1000):
        chance = np.random.default_rng(seed)
        rows = 173 * np.exp(0.16 * chance.standard_normal((2, 24)))
        base = cost(INSNS, {"l1i": rows[0]})
        other = cost(INSNS * 1010 // 1000, {"l1i": 1.01 * rows[1]}, first_draw=1000)
        wrong += effect(base, other, prices).verdict.word is not Word.UNRESOLVED
    assert wrong <= 60


@pytest.mark.slow
@pytest.mark.parametrize("alike", [0.0, 0.95])
def test_intervals_hold_the_effect_as_often_as_they_log(alike: float) -> None:
    prices = priced(0.5, l1i=(4, 4))
    truth = 0.5 * 30 + 4 * 173 * 0.2 * math.exp(0.16**2 / 2)
    missed = 0
    for seed in range(1000):
        other = realistic(
            2 * seed + 1, INSNS + 30, layouts=32, times=1.2, like=2 * seed, alike=alike
        )
        found = effect(realistic(2 * seed, layouts=32), other, prices)
        missed += not found.cycles.low <= truth <= found.cycles.high
    assert 25 <= missed <= 75


@pytest.mark.slow
def test_of_many_regions_few_words_are_wrong() -> None:
    """Forty regions, of which ten differ, many times over; regions at the margin err most."""
    prices = priced(0.5, l1i=(4, 4))
    shares = []
    for seed in range(60):
        chance = np.random.default_rng(seed)
        regions = []
        for number in range(40):
            rows = 173 * np.exp(0.16 * chance.standard_normal((2, 16)))
            times = 1.10 if number < 10 else 1.01
            base = cost(INSNS, {"l1i": rows[0]})
            other = cost(round(INSNS * times), {"l1i": times * rows[1]}, first_draw=1000)
            regions.append(ComparedRegion(f"op{number}", base, other))
        words = [one.verdict.word for one in placement_effects(regions, prices)]
        wrong = sum(word is not Word.UNRESOLVED for word in words[10:])
        right = sum(word is Word.SLOWER for word in words[:10])
        assert right >= 9
        shares.append(wrong / (wrong + right))
    assert sum(shares) / len(shares) <= 0.05
