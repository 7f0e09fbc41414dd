# SPDX-License-Identifier: GPL-2.0-or-later
"""Levels of a kernel's runs: where there are two, how often, and which functions differ."""

from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.counts.model import RunCounts
from kdelta.infer.effects.effects import Word, compare_runs
from kdelta.infer.effects.levels import CLEAR_GAP, FEWEST_RUNS, StateLevels, state_levels
from tests.synthetic import own, region, run

UNIX_6_1 = (23_515, 22_533, 22_534, 22_533, 22_533, 22_533, 22_533, 22_547)
UNIX_6_12 = (22_518, 23_658, 22_483, 22_585, 22_463, 22_590, 23_466, 22_434)
"""unix-round-trip of Debian's 6.1.192 and 6.12.117, eight runs each."""


def levels_of(values: Sequence[int]) -> StateLevels | None:
    functions = {("kernel", "steady"): [100] * len(values), ("kernel", "moved"): list(values)}
    return state_levels([Fraction(one) for one in values], functions, [1] * len(values))


@pytest.mark.parametrize(("values", "low", "high"), [(UNIX_6_1, 7, 1), (UNIX_6_12, 6, 2)])
def test_levels_of_a_round_trip_are_two(values: tuple[int, ...], low: int, high: int) -> None:
    found = levels_of(values)
    assert found
    ordered = sorted(values)
    assert (found.low_runs, found.high_runs) == (low, high)
    assert found.low == Fraction(sum(ordered[:low]), low)
    assert found.high == Fraction(sum(ordered[low:]), high)
    assert found.functions == (("moved", found.high - found.low),)


@pytest.mark.parametrize(
    "values",
    [
        (100, 100, 200),  # too few
        (1000, 1000, 1000, 1005),  # not relevant
        (1000, 1010, 1020, 1030, 1040),  # no gap
        (1000, 1010, 1010 + 10 * CLEAR_GAP, 1020 + 10 * CLEAR_GAP),
        (1000,) * 8,
    ],
)
def test_levels_without_a_clear_gap_are_none(values: tuple[int, ...]) -> None:
    assert levels_of(values) is None
    assert FEWEST_RUNS == 4


@given(st.lists(st.integers(0, 50), min_size=4, max_size=12), st.randoms())
def test_levels_do_not_depend_on_the_order_of_runs(values: list[int], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert levels_of(shuffled) == levels_of(values)


def test_levels_are_named_where_they_leave_a_row_open() -> None:
    def side(values: Sequence[int]) -> list[RunCounts]:
        return [run(region("op", {own("f"): one}, iterations=1)) for one in values]

    (effect,) = compare_runs(side(UNIX_6_1), side(UNIX_6_12)).operations
    assert effect.verdict.word is Word.UNRESOLVED
    assert effect.verdict.reason.endswith("; runs have two levels (--all)")
    assert effect.notes == (
        "base has two levels: 22535 in 7 of 8 starting states, 23515 in 1 (+980 f)",
        "other has two levels: 22512 in 6 of 8 starting states, 23562 in 2 (+1050 f)",
    )
