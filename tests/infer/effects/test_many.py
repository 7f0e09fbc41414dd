# SPDX-License-Identifier: GPL-2.0-or-later
"""Benjamini and Hochberg: their own example, and by properties."""

import random

from hypothesis import given
from hypothesis import strategies as st

from kdelta.infer.effects.intervals import count_discoveries, error_of_each

# The 15 of the paper's example (thrombolysis): at 5 % it takes four, Bonferroni three.
PAPER = [
    *(0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344),
    *(0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0),
]

chances = st.lists(st.floats(0, 1), max_size=30)


def test_the_papers_example() -> None:
    assert count_discoveries(PAPER) == 4
    assert sum(chance <= 0.05 / 15 for chance in PAPER) == 3


def test_a_later_one_may_carry_earlier_ones() -> None:
    assert count_discoveries([0.04, 0.045, 0.049]) == 3
    assert count_discoveries([0.04, 0.045, 0.051]) == 0


def test_nothing_asked_nothing_found() -> None:
    assert count_discoveries([]) == 0
    assert error_of_each(0, 0) == 0.05


@given(chances)
def test_those_taken_are_those_whose_chance_is_no_more_than_their_interval_may_miss(
    found: list[float],
) -> None:
    taken = count_discoveries(found)
    error = error_of_each(taken, len(found))
    assert 0.05 * (1 / max(1, len(found))) <= error <= 0.05
    assert sum(chance <= error for chance in found) == taken


@given(chances)
def test_a_hopeless_question_costs_and_a_sure_one_is_found(found: list[float]) -> None:
    assert count_discoveries([*found, 1.0]) <= count_discoveries(found)
    assert count_discoveries([*found, 0.0]) >= count_discoveries(found) + 1


def test_few_of_what_is_found_is_wrong() -> None:
    chance = random.Random(1)
    wrong_share = []
    for _ in range(2000):
        nothing = [chance.random() for _ in range(30)]
        real = [chance.random() / 1000 for _ in range(10)]
        error = error_of_each(count_discoveries(nothing + real), 40)
        wrong = sum(one <= error for one in nothing)
        wrong_share.append(wrong / max(1, wrong + sum(one <= error for one in real)))
    mean = sum(wrong_share) / len(wrong_share)
    # 5 % times the share of questions with nothing to find.
    assert 0.03 < mean < 0.0375 + 0.005
