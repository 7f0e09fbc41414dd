# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether regions are steady: series recorded on Debian's kernels, and planted changes of level.

The recorded ones are of operations with a short warm-up (a quarter of the iterations, and no time):
6.1's scheduler changes state in the four round trips. They are runs of equal numbers, as pairs of
the number of own instructions and of how many iterations had it.
"""

import itertools
import json
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kdelta.counts.model import Iterations, RegionCounts, RunCounts
from kdelta.infer.effects.effects import Word, compare_runs
from kdelta.infer.effects.steady import RELEVANT, has_iterations, levels
from tests.synthetic import own, region

SERIES = Path(__file__).parents[1] / "series"
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


CLEAR_PERCENT = 3
NOISY = ("6.12", "unix-round-trip")
"""Its blocks differ by some per cent."""
CALM_SERIES = {
    f"{name} of {kernel}": recorded(kernel, name)
    for kernel, name, steady in CASES
    if steady and (kernel, name) != NOISY
}
EXACT = ("getppid of 6.1", "getppid of 6.12")
"""Series of which hardly an iteration differs from another."""
calm = st.sampled_from(sorted(CALM_SERIES))


@given(calm, st.integers(15, 85), st.integers(4, 40), st.booleans())
def test_change_of_level_planted_in_a_recorded_series_is_found(
    name: str, place_percent: int, size_percent: int, rises: bool
) -> None:
    """As of a change that costs only the first iterations, or only from some iteration on."""
    series = CALM_SERIES[name]
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
@example(100, 2, 0, 509)
def test_periodic_cost_of_a_short_period_is_steady(
    insns: int, period: int, phase: int, count: int
) -> None:
    """As of a slab that is refilled in one of so many iterations: blocks differ by one refill."""
    count = max(count, 200 * period)
    series = [insns + (insns // 2 if i % period == phase % period else 0) for i in range(count)]
    assert levels(of(series)) is None


def added(series: list[int], insns: int, first: int, last: int) -> list[int]:
    """The series with that cost in its iterations from first to last per cent."""
    n = len(series)
    within = range(n * first // 100, n * last // 100)
    return [value + insns * (i in within) for i, value in enumerate(series)]


def word_of(base: list[int], *others: list[int]) -> Word:
    """The verdict on three runs of each side, that of the other with these series in turn."""
    runs = [RunCounts((of(others[i % len(others)]),)) for i in range(3)]
    (found,) = compare_runs([RunCounts((of(base),))] * 3, runs).operations
    return found.verdict.word


@given(calm, st.integers(15, 50), st.integers(20, 40), st.integers(4, 40))
def test_cost_of_a_stretch_within_a_region_is_found(
    name: str, place_percent: int, size_percent: int, cost_percent: int
) -> None:
    """All runs may have it, and all of it, so that their means agree to the instruction."""
    series = CALM_SERIES[name]
    cost = max(3, sum(series) * cost_percent // (100 * len(series)))
    planted = added(series, cost, place_percent, place_percent + size_percent)
    found = levels(of(planted))
    assert found is not None
    assert word_of(series, planted) is Word.NOT_STEADY


@given(st.sampled_from(EXACT), st.integers(1, 40), st.integers(10, 90))
def test_end_of_a_small_cost_gives_no_small_word(name: str, insns: int, place_percent: int) -> None:
    """What does not matter as a level may still be all that there is of an effect."""
    series = CALM_SERIES[name]
    insns = min(insns, max(1, sum(series) // len(series) // 300))
    planted = added(series, insns, 0, place_percent)
    assert word_of(series, planted) not in {Word.FASTER, Word.SLOWER}


@given(calm, st.integers(10, 25), st.integers(4, 60), st.booleans())
def test_stretches_that_cost_more_and_less_in_turn_give_no_firm_word(
    name: str, stretch_percent: int, cost_percent: int, more_expensive_first: bool
) -> None:
    """Their mean is nothing; a region that ends within one has another."""
    series = CALM_SERIES[name]
    cost = sum(series) * cost_percent // (100 * len(series)) * (1 if more_expensive_first else -1)
    stretch = len(series) * stretch_percent // 100
    planted = [value + cost * (1 - 2 * (i // stretch % 2)) for i, value in enumerate(series)]
    assert word_of(series, planted) not in {Word.FASTER, Word.SLOWER}


@given(calm, st.integers(2, 12), st.integers(5, 60))
def test_cost_of_each_nth_iteration_is_measured_as_its_mean(
    name: str, period: int, cost_percent: int
) -> None:
    series = CALM_SERIES[name]
    cost = max(10 * period, sum(series) * cost_percent // (100 * len(series)))
    planted = [value + cost * (i % period == 0) for i, value in enumerate(series)]
    runs = [RunCounts((of(one),)) for one in (series, planted)]
    (found,) = compare_runs([runs[0]] * 3, [runs[1]] * 3).operations
    assert found.costs is not None
    assert float(found.costs.insns.effect.value) == pytest.approx(cost / period, rel=0.02)
    # What blocks of a series differ by is up to 0.4 % of its mean.
    clear = 100 * cost / period >= CLEAR_PERCENT * sum(series) / len(series)
    assert found.verdict.word in ({Word.SLOWER} if clear else {Word.SLOWER, Word.UNRESOLVED})


REFILLED = "open-close of 6.1"
"""A slab of it is refilled once in more iterations than a block has: it is steady as a whole."""


FALSE_ALARMS = 0.022
"""The rate of them that steady.CLEAR is for, at most."""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(CALM_SERIES.keys() - {REFILLED}))
def test_steady_series_trimmed_or_reordered_is_rarely_not_steady(name: str) -> None:
    series, shuffled = CALM_SERIES[name], Random(1)
    n, eighth = len(series), len(series) // 8
    percents = itertools.product(range(0, 31, 3), repeat=2)
    trimmed = [series[n * first // 100 : n - n * last // 100] for first, last in percents]
    orders = [shuffled.sample(range(8), 8) for _ in range(100)]
    reordered = [
        [value for part in order for value in series[part * eighth : (part + 1) * eighth]]
        for order in orders
    ]
    for changed in (trimmed, reordered):
        alarms = sum(levels(of(one)) is not None for one in changed)
        assert alarms <= FALSE_ALARMS * len(changed)


def test_few_iterations_of_two_costs_give_no_firm_word() -> None:
    """As of a change that costs only the first calls, of which a short region sees one."""
    assert word_of([1_000_000] * 2, [1_500_000, 1_000_000]) is Word.UNRESOLVED
    assert word_of([1_000_000] * 2, [1_500_000] * 2) is Word.SLOWER


def test_region_that_was_run_for_longer_is_not_faster_since_it_begins_once() -> None:
    """As of one side that was not steady at first: its region has twice the iterations. An end has
    instructions that are in no iteration.
    """

    def runs(insns: int, count: int) -> list[RunCounts]:
        series = [insns + 2, *[insns] * (count - 1)]
        whole = region("op", {own("work"): sum(series) + 3}, count)
        return [RunCounts((msgspec.structs.replace(whole, iterations=of(series).iterations),))] * 3

    base = runs(344, 4000)
    words = [
        compare_runs(base, runs(insns, 8000)).operations[0].verdict.word
        for insns in (343, 344, 345)
    ]
    assert words == [Word.FASTER, Word.SAME, Word.SLOWER]


def test_two_levels_that_take_turns_give_no_firm_word() -> None:
    """Of a change that makes two levels, 700 iterations each, a region sees one and a half."""
    base = of([1000] * 1000)
    other = of([1000 + 100 * (i // 700 % 2) for i in range(1000)])
    runs = [RunCounts((base,))] * 3, [RunCounts((other,))] * 3
    (found,) = compare_runs(*runs).operations
    assert found.verdict.word is Word.NOT_STEADY
    assert found.verdict.reason == "other: 1000 instructions, from iteration 687 on 1096"


@pytest.mark.parametrize(
    ("more", "word"),
    [(12, Word.SLOWER), (0, Word.SAME), (60, Word.NOT_STEADY)],
)
def test_pairs_that_differ_steadily_are_judged_whatever_levels_both_have(
    more: int, word: Word
) -> None:
    """60: the other kernel has 48 more from the new level on than before it."""
    base = [1000 + 116 * (i >= 40) for i in range(1000)]
    later = 12 if more == 60 else more
    other = [insns + (later if i < 40 else more) for i, insns in enumerate(base)]
    sides = (
        [RunCounts((of(series),), perturbation=index) for index in range(1, 7)]
        for series in (base, other)
    )
    (found,) = compare_runs(*sides, alike=True).operations
    assert found.verdict.word is word


def test_mean_and_median_of_two_signs_give_no_firm_word() -> None:
    base = of([1000] * 1000)
    rare = of(([990] * 24 + [2000]) * 40)
    (found,) = compare_runs([RunCounts((base,))] * 3, [RunCounts((rare,))] * 3).operations
    assert found.verdict.word is Word.UNRESOLVED
    assert found.verdict.reason == "the mean and the median iteration differ in sign"


@pytest.mark.parametrize("count", [0, 1, 3])
def test_few_iterations_cannot_tell(count: int) -> None:
    series = of([100 * (i + 1) for i in range(count)])
    assert not has_iterations(series)
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
