# SPDX-License-Identifier: GPL-2.0-or-later
"""Simulated series of boots: verdicts on them are seldom wrong."""

import numpy as np
import pytest

from kdelta.infer.clock.decide import ALPHA, ClockVerdict
from kdelta.infer.clock.e_values import log_e_values
from kdelta.infer.effects.effects import Word
from tests.infer.clock.simulated import (
    EFFECTS,
    KINDS,
    MARGIN,
    is_wrong,
    judged,
    mixture_differs,
    operations,
    stopped,
)

HONEST = [name for name, kind in KINDS.items() if not kind.limit]


@pytest.mark.parametrize("name", HONEST)
def test_e_values_seldom_reach_their_bound_without_an_effect(name: str) -> None:
    base, other = KINDS[name].draw(np.random.default_rng(1), 800)
    reached = (log_e_values(other - base) >= -np.log(ALPHA)).any(axis=1)
    assert reached.mean() < ALPHA


@pytest.mark.parametrize("name", HONEST)
def test_e_values_have_a_mean_of_about_one_without_an_effect(name: str) -> None:
    base, other = KINDS[name].draw(np.random.default_rng(2), 800)
    assert np.exp(log_e_values(other - base))[:, :10].mean(axis=0).max() < 1.4


@pytest.mark.parametrize("name", HONEST)
@pytest.mark.parametrize("effect", ["none", "beyond"])
@pytest.mark.slow
def test_verdicts_and_intervals_are_seldom_wrong(name: str, effect: str) -> None:
    row = judged(name, effect, 60)
    assert row.wrong <= 2 * ALPHA
    assert row.covered >= 1 - 2 * ALPHA


def test_plain_t_mixture_is_wrong_too_often_where_the_second_boot_is_slower() -> None:
    base, other = KINDS["second"].draw(np.random.default_rng(1), 800)
    assert mixture_differs(other - base) > ALPHA


def test_links_that_are_used_again_are_a_difference_of_builds() -> None:
    assert judged("links-1", "none", 60).wrong > 0.3
    assert judged("links-5", "none", 60).wrong > 0.2


def test_large_effects_are_found_soon() -> None:
    assert judged("normal", "1", 60).pairs < 20
    assert judged("normal", "2", 60).pairs < 10


def test_discoveries_of_many_operations_are_seldom_false() -> None:
    found = operations(15)
    assert found.false_share <= ALPHA
    assert found.complete > 0.9


def test_series_stops_at_its_first_verdict() -> None:
    found = stopped(np.full(60, 0.05), MARGIN)
    assert (found.word, found.pairs) == (Word.SLOWER, 7)
    assert stopped(np.tile([0.05, -0.05], 30), MARGIN).pairs == 60


@pytest.mark.parametrize(
    ("word", "true", "wrong"),
    [
        (Word.SLOWER, 0.01, False),
        (Word.SLOWER, 0.0, True),
        (Word.SLOWER, -0.01, True),
        (Word.FASTER, 0.01, True),
        (Word.FASTER, -0.01, False),
        (Word.SAME, 0.009, False),
        (Word.SAME, 0.011, True),
        (Word.UNRESOLVED, 0.5, False),
    ],
)
def test_verdict_that_is_not_true_is_wrong(word: Word, true: float, wrong: bool) -> None:
    verdict = ClockVerdict(word, 0.0, -1.0, 1.0, ALPHA, 1.0, 7)
    assert is_wrong(verdict, true, MARGIN) is wrong


def test_kinds_of_the_first_table_have_all_effects() -> None:
    assert sum(kind.effects == EFFECTS for kind in KINDS.values()) == 6
