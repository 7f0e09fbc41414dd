# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether regions are steady: series recorded on Debian's kernels, and planted changes of level.

The recorded ones are of operations with a short warm-up (a quarter of the iterations, and no time):
6.1's scheduler changes state in the four round trips. They are runs of equal numbers, as pairs of
the number of own instructions and of how many iterations had it.
"""

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.counts.model import Iterations, RegionCounts, RunCounts
from kdelta.infer.effects import Word, compare
from kdelta.infer.steady import RELEVANT, can_tell, levels
from tests.synthetic import own, region

SERIES = Path(__file__).parent / "series"
ROUND_TRIPS = ("pipe-round-trip", "unix-round-trip", "tcp-round-trip", "futex-ping-pong")
CALM = ("getppid", "open-close", "thread-create-join")


def recorded(kernel: str, operation: str) -> list[int]:
    pairs = json.loads((SERIES / f"{kernel}.json").read_text())[operation]
    return [value for value, times in pairs for _ in range(times)]


def of(insns: list[int]) -> RegionCounts:
    made = region("op", {own("work"): sum(insns)}, len(insns))
    none = (0,) * len(insns)
    rows = Iterations(none, tuple(insns), none, none)
    return RegionCounts("op", rows, made.functions, sum(insns))


CASES = [("6.1", name, False) for name in ROUND_TRIPS]
CASES += [("6.1", name, True) for name in CALM]
CASES += [("6.12", name, True) for name in (*ROUND_TRIPS, *CALM)]


@pytest.mark.parametrize(("kernel", "operation", "steady"), CASES)
def test_recorded_series_is_steady_or_not_as_known(
    kernel: str, operation: str, steady: bool
) -> None:
    found = levels(of(recorded(kernel, operation)))
    assert (found is None) is steady
    if found:
        assert abs(found.after - found.before) > RELEVANT * found.after


NOISY = ("6.12", "unix-round-trip")
"""Its blocks differ by some per cent by themselves."""
CALM_SERIES = [
    recorded(kernel, name) for kernel, name, steady in CASES if steady and (kernel, name) != NOISY
]


@given(st.sampled_from(CALM_SERIES), st.integers(15, 85), st.integers(4, 40), st.booleans())
def test_change_of_level_planted_in_a_recorded_series_is_found(
    series: list[int], place_percent: int, size_percent: int, rises: bool
) -> None:
    """As of a change that costs only the first iterations, or only from some iteration on."""
    at = len(series) * place_percent // 100
    mean = sum(series) // len(series)
    cost = max(1, mean * size_percent // 100)
    planted = [
        value + cost if (index >= at) is rises else value for index, value in enumerate(series)
    ]
    found = levels(of(planted))
    assert found is not None
    assert (found.after > found.before) is rises


@given(st.integers(100, 10**6), st.integers(1, 40), st.integers(0, 39), st.integers(64, 4000))
def test_periodic_cost_of_a_short_period_is_steady(
    insns: int, period: int, phase: int, count: int
) -> None:
    """As of a slab that is refilled in one of so many iterations: blocks differ by one refill."""
    count = max(count, 200 * period)
    series = [insns + (insns // 2 if i % period == phase % period else 0) for i in range(count)]
    assert levels(of(series)) is None


def test_two_levels_that_take_turns_give_no_firm_word() -> None:
    """Of a change that makes two levels, 700 iterations each, a region sees one and a half."""
    base = of([1000] * 1000)
    other = of([1000 + 100 * (i // 700 % 2) for i in range(1000)])
    runs = [RunCounts((base,))] * 3, [RunCounts((other,))] * 3
    (found,) = compare(*runs).operations
    assert found.verdict.word is Word.NOT_STEADY
    assert found.verdict.reason == "other: 1000 instructions, from iteration 687 on 1096"


def test_mean_and_median_of_two_signs_give_no_firm_word() -> None:
    base = of([1000] * 1000)
    rare = of(([990] * 24 + [2000]) * 40)
    (found,) = compare([RunCounts((base,))] * 3, [RunCounts((rare,))] * 3).operations
    assert found.verdict.word is Word.UNRESOLVED
    assert found.verdict.reason == "the mean and the median iteration differ in sign"


@pytest.mark.parametrize("count", [0, 1, 3])
def test_few_iterations_cannot_tell(count: int) -> None:
    series = of([100 * (i + 1) for i in range(count)])
    assert not can_tell(series)
    assert levels(series) is None


def test_five_iterations_that_move_are_not_steady() -> None:
    assert levels(of([100, 100, 100, 200, 200])) is not None


def test_noise_is_rarely_taken_for_a_change() -> None:
    """Blocks in any order are as likely as in theirs: of a calm series hardly any is unsteady."""
    series = recorded("6.12", "thread-create-join")
    blocks = [series[i : i + 61] for i in range(0, 976, 61)]
    orders = [blocks[i:] + blocks[:i] for i in range(16)]
    orders += [list(reversed(order)) for order in orders]
    found = [levels(of(list(itertools.chain(*order)))) for order in orders]
    assert found.count(None) == len(orders)
