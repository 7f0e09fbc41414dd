# SPDX-License-Identifier: GPL-2.0-or-later
"""Effects by pairs: runs of equal perturbation, whose state cancels where kernels are alike."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.counts.model import RunCounts
from kdelta.infer.effects.chance import (
    NO_CODE,
    SAME_CODE_RUNS,
    DifferingCode,
    by_chance,
    first_verdicts,
)
from kdelta.infer.effects.effects import MARGIN, OperationEffect, Verdict, Word, compare_runs
from kdelta.infer.effects.estimate import FEWEST_PAIRS, MANY_PAIRS, PAIR_LOOKS, TIMES, Estimate
from kdelta.infer.effects.pairs import paired_effect
from kdelta.spec.run import boot_of
from tests.infer.timed_runs import ran
from tests.synthetic import own, region, run

STATES = (0, 500, -300, 40, 777, -60, 250, 9, 130, -480, 333, 61, -7, 90, 411, -222, 18)
"""What a perturbation moves, of 100 iterations, by its index."""


def side(
    more: int = 0,
    indexes: Sequence[int] = range(7),
    apart: Mapping[int, int] | None = None,
    iterations: int = 100,
) -> list[RunCounts]:
    """Runs that perturbations move; `more` instructions an iteration, and by index of a run what it
    has besides.
    """
    return [
        msgspec.structs.replace(
            run(
                region(
                    "op",
                    {
                        own("f"): (1000 + more) * iterations + (apart or {}).get(index, 0),
                        own("g"): 1000 + STATES[index],
                    },
                    iterations,
                )
            ),
            perturbation=index,
        )
        for index in indexes
    ]


def effect(
    base: Sequence[RunCounts], other: Sequence[RunCounts], *, alike: bool = True
) -> OperationEffect:
    (one,) = compare_runs(base, other, alike=alike).operations
    return one


def insns(one: OperationEffect) -> Estimate:
    assert one.costs
    return one.costs.insns.effect


whole = st.integers(-1000, 1000).map(Fraction)
several = st.lists(whole, min_size=2, max_size=16)


@given(several, whole)
def test_an_interval_moves_with_its_differences_and_turns_with_their_sign(
    differences: list[Fraction], by: Fraction
) -> None:
    boots = [boot_of(at + 1) for at in range(len(differences))]
    found = paired_effect(differences, boots)
    assert found.low <= found.value <= found.high
    assert found.paired
    assert found.n == len(differences)
    moved = paired_effect([one + by for one in differences], boots)
    assert (moved.value, moved.low) == (found.value + by, found.low + by)
    assert paired_effect([-one for one in differences], boots) == -found
    assert found.exact == (len(set(differences)) == 1)


@given(st.lists(whole, min_size=2, max_size=MANY_PAIRS - 1))
def test_of_few_pairs_the_interval_is_by_their_range(differences: list[Fraction]) -> None:
    found = paired_effect(differences, range(len(differences)))
    assert found.half_width == TIMES * (max(differences) - min(differences))


def test_boots_that_repeat_count_once() -> None:
    differences = [Fraction(one) for one in (1, -1, 2, -2, 1, -1, 2, -2) * 2]
    apart = paired_effect(differences, range(16))
    clustered = paired_effect(differences, [0, 1, 2, 3] * 4)
    assert clustered.half_width > 2 * apart.half_width
    assert paired_effect(differences, [0] * 16).half_width == TIMES * 4


def test_eight_perturbations_in_a_row_are_of_eight_boots() -> None:
    for first in (1, 2, 9):
        assert len({boot_of(index) for index in range(first, first + 8)}) == 8


def test_what_perturbations_move_alike_cancels() -> None:
    one = effect(side(), side(1))
    assert (insns(one).exact, insns(one).value, insns(one).n) == (True, Fraction(1), 7)
    assert one.verdict.word is Word.SLOWER
    assert one.costs
    assert one.costs.insns.base.low < one.costs.insns.base.high
    (f, g) = one.functions
    assert (f.name, f.cost.effect.exact, f.cost.effect.value) == ("f", True, Fraction(1))
    assert (g.cost.effect.exact, g.cost.effect.value) == (True, Fraction(0))
    apart = effect(side(), side(1), alike=False)
    assert insns(apart).low < 0 < insns(apart).high, "the states are not alike"


def test_kernels_that_are_not_alike_have_the_narrower_interval() -> None:
    base, other = side(indexes=range(16)), side(1, range(16), {3: 40})
    one = insns(effect(base, other, alike=False))
    assert (one.paired, one.n) == (True, 15)
    assert one.low < 1 < one.high < 3
    noise = {index: STATES[-index] * 100 for index in range(16)}
    shuffled = side(1, range(16), noise)
    assert not insns(
        effect(side(indexes=range(16), apart=noise), shuffled, alike=False)
    ).paired or (insns(effect(base, shuffled, alike=False)).half_width > one.half_width)


def test_a_run_that_failed_in_the_middle_shifts_no_pair() -> None:
    base = side(indexes=(0, 1, 2, 4, 5, 6, 7))
    other = side(1, indexes=(0, 1, 3, 4, 5, 6, 7))
    one = effect(base, other)
    assert (insns(one).exact, insns(one).value, insns(one).n) == (True, Fraction(1), 6)
    assert one.notes == (
        "left out, since base alone has them: runs #2",
        "left out, since other alone has them: runs #3",
    )
    assert effect(base, list(reversed(other))).verdict == one.verdict


def test_the_pair_that_is_not_shaken_is_in_no_interval() -> None:
    one = effect(side(), side(1, apart={0: 900}))
    assert (insns(one).exact, insns(one).value, insns(one).n) == (True, Fraction(1), 6)
    assert insns(effect(side(), side(1, apart={5: 900}))).half_width == TIMES * 9


def test_less_than_two_pairs_say_nothing() -> None:
    one = effect(side(indexes=(1, 2)), side(1, indexes=(2, 3)))
    assert one.verdict.word is Word.UNRESOLVED
    assert "less than two pairs" in one.verdict.reason


def test_runs_with_other_iterations_are_no_pairs() -> None:
    odd = side(1, (2,), iterations=200)
    one = effect(side(), [*side(1, (0, 1)), *odd, *side(1, (3, 4, 5, 6))])
    assert (insns(one).exact, insns(one).n) == (True, 6)
    apart = effect(side(), side(1, iterations=200))
    assert not insns(apart).paired


@pytest.mark.parametrize(
    ("pairs", "same_code", "firm"),
    [
        (FEWEST_PAIRS - 1, False, False),
        (FEWEST_PAIRS, False, True),
        (FEWEST_PAIRS, True, False),
        (SAME_CODE_RUNS, True, True),
    ],
)
def test_a_difference_that_no_iteration_shows_takes_pairs(
    pairs: int, *, same_code: bool, firm: bool
) -> None:
    """Thirty instructions in one of 100 iterations, as a timer may bring."""

    def runs(more: int) -> list[RunCounts]:
        return [
            msgspec.structs.replace(
                ran([1000 + STATES[at] + more, *[1000 + STATES[at]] * 99], [5000 + at]),
                perturbation=at,
            )
            for at in range(1, pairs + 1)
        ]

    base, other = runs(0), runs(30)
    effects = compare_runs(base, other, alike=True)
    assert effects.operations[0].verdict.word is Word.SLOWER
    differing: DifferingCode = {"op": ()} if same_code else {}
    assert (by_chance(effects, base, other, differing=differing) == ()) is firm
    first = first_verdicts(base, other, differing=lambda: differing, alike=True)
    wanted = next(look for look in PAIR_LOOKS if look > (11 if same_code else 6))
    assert first.runs == ({} if firm else {"op": wanted})


def test_a_difference_in_each_iteration_takes_four_pairs() -> None:
    def runs(more: int, pairs: int) -> list[RunCounts]:
        return [
            msgspec.structs.replace(
                ran([1000 + STATES[at] + more] * 100, [5000 + at]), perturbation=at
            )
            for at in range(1, pairs + 1)
        ]

    for pairs in (3, 4):
        base, other = runs(0, pairs), runs(1, pairs)
        found = by_chance(compare_runs(base, other, alike=True), base, other)
        assert found == (("op",) if pairs < 4 else ())


@pytest.mark.parametrize("varied", [STATES, (0,) * len(STATES)])
def test_what_the_code_that_differs_does_not_make_takes_six_pairs(varied: Sequence[int]) -> None:
    """All of the difference is in `f`, whether runs vary or are exact."""

    def runs(more: int, pairs: int) -> list[RunCounts]:
        return [
            msgspec.structs.replace(ran([1000 + varied[at] + more] * 100), perturbation=at)
            for at in range(1, pairs + 1)
        ]

    for pairs in (4, 5, 6):
        base, other = runs(0, pairs), runs(1, pairs)
        effects = compare_runs(base, other, alike=True)
        for name, firm in (("f", True), ("g", pairs == 6)):
            differing: DifferingCode = {"op": {("kernel", name)}}
            assert (by_chance(effects, base, other, differing=differing) == ()) is firm


def test_four_pairs_show_what_is_the_same() -> None:
    varied = {1: 60, 2: -40, 3: 10, 4: 0}
    base = side(indexes=range(1, 5))
    other = side(indexes=range(1, 5), apart=varied)
    first = first_verdicts(base, other, alike=True)
    (one,) = first.effects.operations
    assert (one.verdict.word, first.runs) == (Word.SAME, {})
    assert one.verdict.within is not None
    assert one.verdict.within <= MARGIN * 1010
    assert first_verdicts(base[:3], other[:3], alike=True).runs == {"op": 5}


def test_what_no_code_can_have_changed_is_the_same_unless_runs_show_it() -> None:
    indexes = range(1, 5)
    varied = side(indexes=indexes, apart={1: 6000, 2: -4000, 3: 900, 4: 0})
    base = side(indexes=indexes)

    def first(other: list[RunCounts], unchanged: tuple[str, ...]) -> Verdict:
        found = first_verdicts(base, other, unchanged=lambda: unchanged, alike=True)
        return found.effects.operations[0].verdict

    assert first(varied, ()).word is Word.UNRESOLVED
    assert first(varied, ("op",)) == Verdict(Word.SAME, reason=NO_CODE)
    longer = side(100, indexes, {1: 6000, 2: -4000, 3: 900, 4: 0})
    assert first(side(100, indexes, {1: 60}), ("op",)).word is Word.SLOWER
    assert first(longer, ("op",)).word is Word.SAME, "its interval has zero in it"
    base = side(indexes=range(1, 4))
    near = side(indexes=range(1, 4), apart={1: 110, 2: 100, 3: 105})
    assert first(near, ()) == Verdict(Word.SLOWER)
    assert first(near, ("op",)).reason == NO_CODE, "three pairs within the margin"
    assert first(side(1, range(1, 4)), ("op",)) == Verdict(Word.SLOWER), "equal in all of them"


def test_what_iterations_differ_by_is_in_the_interval_of_runs_that_vary() -> None:
    """Some of a hundred iterations cost much more, others in each run; a patch makes them more."""

    def runs(events: int, pairs: int) -> list[RunCounts]:
        found = []
        for at in range(1, pairs + 1):
            order = np.random.default_rng(at).permutation(100)
            costs = [1000] * 100
            for place in order[: 20 + events]:
                costs[place] += 3000 + 40 * at * events
            found.append(msgspec.structs.replace(ran(costs), perturbation=at))
        return found

    few = effect(runs(0, 4), runs(2, 4)).verdict
    assert (few.word, few.runs_needed) == (Word.UNRESOLVED, PAIR_LOOKS[1])
    many = effect(runs(0, 8), runs(2, 8))
    assert not insns(many).exact
    assert many.verdict.word is Word.SLOWER
