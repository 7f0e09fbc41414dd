# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts that chance could have made are found, by hand and by simulation; real ones are kept."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest

from kdelta.counts.model import RunCounts
from kdelta.infer.effects.chance import (
    ENOUGH,
    FEW,
    LARGE,
    NEAR,
    SAME_CODE_RUNS,
    by_chance,
    left_open,
    wanting_runs,
    with_operations,
)
from kdelta.infer.effects.effects import Word, compare_runs
from kdelta.infer.effects.estimate import (
    CLEAR,
    ERROR,
    LOOKS,
    effect_between,
    error_of_look,
    estimate,
)
from kdelta.infer.effects.intervals import two_sided
from tests.infer.timed_runs import ITERATIONS, TIMER, ran, steady
from tests.synthetic import own, region, run

pytestmark = pytest.mark.long


def doubted(base: Sequence[RunCounts], other: Sequence[RunCounts]) -> tuple[str, ...]:
    effects = compare_runs(base, other)
    assert effects.operations[0].verdict.word in {Word.SLOWER, Word.FASTER}, "there is a verdict"
    found = by_chance(effects, base, other)
    assert by_chance(compare_runs(other, base), other, base) == found, "whichever is the base"
    return found


@pytest.mark.parametrize("runs", [2, 3])
def test_a_timer_that_ends_in_one_side_only_may_be_chance(runs: int) -> None:
    with_timer = [steady(1000, 953, TIMER)] * runs
    assert doubted([steady(1000)] * runs, with_timer) == ("op",)
    # The same with a gap of fifty times the ranges: as signal-handler was seen to differ.
    spread = [steady(1000, 953 + by, TIMER) for by in range(runs)]
    assert doubted([steady(1000, 0, TIMER)] * runs, spread) == ("op",)


def test_what_never_moves_and_is_never_interrupted_is_exact() -> None:
    assert doubted([steady(1000)] * 3, [steady(1000, 16)] * 3) == ()
    assert doubted([steady(1000, 0, TIMER)] * 3, [steady(1000, 16, TIMER)] * 3) == ()
    # One of them has one more timer.
    others = [steady(1000, 16), steady(1000, 16), steady(1000, 16, TIMER)]
    assert doubted([steady(1000)] * 3, others) == ("op",)


def test_an_effect_in_each_iteration_needs_no_more_runs() -> None:
    base = [steady(1000), steady(1000, 20, TIMER), steady(1000, 0, TIMER)]
    others = [steady(1001, 20, TIMER), steady(1001), steady(1001, 5, TIMER)]
    assert doubted(base, others) == ()
    assert doubted(base[:2], others[:2]) == ()
    # An instruction in each, and 60 in one of them that a timer may have brought.
    base = [steady(1000, by, TIMER + by) for by in range(3)]
    others = [steady(1001, 260 + by, TIMER + by) for by in range(3)]
    assert doubted(base, others) == ("op",)


def test_iterations_that_are_mostly_interrupted_log_nothing() -> None:
    few, most = (tuple([TIMER] * n) for n in (49, 51))
    base = [ran([1000] * 100, few[by:]) for by in range(3)]
    assert doubted(base, [ran([1010] * 100, few)] * 3) == ()
    assert doubted(base, [ran([1010] * 100, most)] * 3) == ("op",)
    # A region of a single iteration is its own median.
    assert doubted([ran([1000], [TIMER])] * 3, [ran([1200], [TIMER + 1])] * 3) == ("op",)


def test_medians_with_a_spread_must_be_clear_of_it() -> None:
    def side(insns: int, runs: int = 3) -> list[RunCounts]:
        return [steady(insns + by) for by in range(runs)]

    reach = 2 + 2
    assert doubted(side(1000), side(1000 + CLEAR * reach + 1)) == ()
    assert doubted(side(1000), side(1000 + CLEAR * reach)) == ("op",)
    assert doubted(side(1000, 2), side(1400, 2)) == ("op",), "two runs have hardly a range"


def test_the_mean_may_have_more_spread_than_the_median() -> None:
    base = [steady(1000 + by, 250 * by, TIMER) for by in range(3)]
    others = [steady(1017 + by, 250 * by, TIMER) for by in range(3)]
    mean = compare_runs(base, others).operations[0].costs
    assert mean is not None
    assert mean.insns.effect.low > 0
    assert mean.insns.effect.half_width > mean.median_insns.effect.half_width == 4
    assert doubted(base, others) == (), "17 is more than 4 times the medians' ranges of 2 and 2"


def test_what_is_too_large_for_a_timer() -> None:
    """A region of one iteration, in which ticks end."""

    def side(insns: int, runs: int = 3, ticks: int = TIMER) -> list[RunCounts]:
        return [ran([insns + by], [ticks - by]) for by in range(runs)]

    assert CLEAR * TIMER == 20_000
    assert doubted(side(10**6), side(10**6 + 20_001)) == ()
    assert doubted(side(10**6), side(10**6 + 20_000)) == ("op",)
    assert doubted(side(10**6, ticks=5), side(10**6 + LARGE * 4 + 1, ticks=5)) == ()
    assert doubted(side(10**6, ticks=5), side(10**6 + LARGE * 4, ticks=5)) == ("op",)
    assert doubted(side(10**6, 2), side(2 * 10**6, 2)) == ("op",), "two runs have hardly a range"


def test_many_runs_decide_by_their_mean() -> None:
    base, others = ([steady(1000, more, TIMER) for more in row] for row in (range(8), range(9, 17)))
    assert doubted(base, others) == ()
    assert doubted(base[:6], others[:2]) == ("op",)
    effect = compare_runs(base, others).operations[0]
    assert effect.costs is not None
    insns = effect.costs.insns.effect
    # Variance 6 a side, so a standard error of sqrt(6/8 + 6/8), and 14 degrees of freedom.
    far = two_sided(1e-4, 14) * math.sqrt(1.5) / ITERATIONS
    assert float(insns.half_width) == pytest.approx(far, rel=1e-8)
    assert insns.low > 0


def test_looks_share_the_error() -> None:
    assert sum(map(error_of_look, LOOKS)) == ERROR
    assert [error_of_look(runs) for runs in (7, 15, 16, 100)] == [
        ERROR * part / 10 for part in (1, 1, 2, 4)
    ]


def test_same_of_few_varying_runs_is_left_to_more() -> None:
    """Three runs of two equally frequent levels are alike in one of four cases."""
    base = [steady(1000, by, TIMER) for by in (0, 1, 0)]
    effects = compare_runs(base, base)
    assert effects.operations[0].verdict.word is Word.SAME
    chance = by_chance(effects, base, base)
    assert chance == ("op",)
    assert wanting_runs(effects, chance) == {"op": ENOUGH}
    many = base * 3
    assert by_chance(compare_runs(many, many), many, many) == ()


def test_same_median_of_four_runs_is_the_same_where_a_timer_adds_little() -> None:
    def side(runs: int, timer: int, insns: int = 1000) -> list[RunCounts]:
        return [steady(insns, timer * (at % 2), TIMER) for at in range(runs)]

    def found(base: list[RunCounts], other: list[RunCounts]) -> tuple[str, ...]:
        effects = compare_runs(base, other)
        assert effects.operations[0].verdict.word is Word.SAME
        return by_chance(effects, base, other)

    most = math.floor(NEAR * 1000 * ITERATIONS / 2)  # both ranges count
    assert found(side(FEW, most), side(FEW, most)) == ()
    assert found(side(FEW - 1, most), side(FEW - 1, most)) == ("op",)
    assert found(side(FEW, most + 1), side(FEW, most + 1)) == ("op",)
    moved = [*side(FEW - 1, 0, 10_000), *side(1, 0, 10_001)]
    assert found(moved, moved) == ("op",), "their median iterations differ"


def test_a_difference_in_the_same_code_takes_runs_that_agree() -> None:
    def found(runs: int) -> tuple[str, ...]:
        base, other = [steady(1000)] * runs, [steady(1000, 16)] * runs
        effects = compare_runs(base, other)
        assert by_chance(effects, base, other) == ()
        return by_chance(effects, base, other, differing={"op": ()})

    assert found(SAME_CODE_RUNS - 1) == ("op",)
    assert found(SAME_CODE_RUNS) == ()


def test_no_verdict_no_doubt() -> None:
    base = [steady(1000, 0, TIMER)] * 3
    assert by_chance(compare_runs(base, base), base, base) == ()
    assert by_chance(compare_runs(base[:1], [steady(9)]), base[:1], [steady(9)]) == ()
    alone = [run(region("only", {own("f"): 5}))]
    assert by_chance(compare_runs(base, alone), base, alone) == ()


def test_better_runs_take_the_place_of_the_first() -> None:
    def both(insns: int, warning: str = "") -> RunCounts:
        rows = [region(name, {own("f"): insns}) for name in ("a", "b")]
        return run(*rows, warnings=(warning,) if warning else ())

    first = [both(100, "never quiet")] * 3, [both(200)] * 3
    more = [run(region("b", {own("f"): 100}))] * 8, [run(region("b", {own("f"): 100}))] * 8
    effects = with_operations(
        compare_runs(*first),
        compare_runs(*more).operations,
        [*first[0], *more[0]],
        [*first[1], *more[1], run(warnings=("a word",))],
    )
    assert [one.verdict.word for one in effects.operations] == [Word.SLOWER, Word.SAME]
    assert [one.base.n for one in effects.operations if one.base] == [3, 8]
    assert effects.warnings == ("base: never quiet (3 runs)", "other: a word")
    left = left_open(effects, ["a"], "who knows")
    assert (left.operations[0].verdict.word, left.operations[0].verdict.reason) == (
        Word.UNRESOLVED,
        "who knows",
    )
    assert left.operations[1] == effects.operations[1]


Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]

NORMAL: Draw = lambda random, shape: random.normal(0, 1000, shape)  # noqa: E731
EXPONENTIAL: Draw = lambda random, shape: random.exponential(1000, shape)  # noqa: E731


@pytest.mark.parametrize("draw", [NORMAL, EXPONENTIAL], ids=["normal", "exponential"])
@pytest.mark.slow
def test_spread_without_a_difference(draw: Draw) -> None:
    pairs = 4000
    random = np.random.default_rng(4)
    counts = dict.fromkeys((2, 3, ENOUGH), 0)
    for runs in counts:
        for row in draw(random, (pairs, 2 * runs)).round().astype(int).tolist():
            sides = [estimate([Fraction(value) for value in part]) for part in _halves(row)]
            effect = effect_between(sides[0], sides[1])
            counts[runs] += effect.low > 0 or effect.high < 0
    # 13 %, 1.3 % and 0.016 % of 4,000, with four standard errors more.
    assert 400 < counts[2] < 620
    assert 20 < counts[3] < 85
    assert counts[ENOUGH] <= 4


@pytest.mark.slow
@pytest.mark.parametrize("often", [0.5, 0.2])
def test_two_values_without_a_difference(often: float) -> None:
    """A timer ends in the region or does not: often neither side has any spread."""
    pairs = 300
    random = np.random.default_rng(4)
    words = {3: 0, ENOUGH: 0}
    for runs in words:
        for row in (random.random((pairs, 2 * runs)) < often).tolist():
            base, other = (
                [steady(1000, 265 * it, TIMER * it) for it in part] for part in _halves(row)
            )
            effects = compare_runs(base, other)
            said = effects.operations[0].verdict.word in {Word.SLOWER, Word.FASTER}
            words[runs] += said
            if said and runs == 3:
                assert by_chance(effects, base, other) == ("op",)
    share = 2 * (often * (1 - often)) ** 3
    assert abs(words[3] - pairs * share) <= 4 * math.sqrt(pairs * share)
    assert words[ENOUGH] == 0


def _halves(row: list[int]) -> tuple[list[int], list[int]]:
    return row[: len(row) // 2], row[len(row) // 2 :]
