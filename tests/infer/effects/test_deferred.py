# SPDX-License-Identifier: GPL-2.0-or-later
"""Work that moves to another task is no gain, and none that chance leaves there is a loss."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kdelta.counts.model import LeftWork, RegionCounts, RunCounts, merged_regions
from kdelta.infer.effects.deferred import WITH_OTHERS, leaves_work, left_work
from kdelta.infer.effects.effects import MARGIN, OperationEffect, Verdict, Word, compare_runs
from kdelta.infer.effects.gate import Exit, decide_gate, judge_path
from kdelta.report.model import KernelRuns
from kdelta.studies.compare.answer import pairs_of, path_text
from kdelta.studies.compare.causes import cause_of
from kdelta.studies.compare.model import Compared, CompareReport
from tests.synthetic import interrupts, other, own, region, run, user

MANY = 8


def runs(insns: int, elsewhere: list[int]) -> list[RunCounts]:
    """A run for each figure of other tasks, an iteration."""
    return [
        run(region("op", {own("f"): 100 * insns, other("rcu_do_batch"): 100 * one}, 100))
        for one in elsewhere
    ]


def effect(base: tuple[int, list[int]], changed: tuple[int, list[int]]) -> OperationEffect:
    (found,) = compare_runs(runs(*base), runs(*changed)).operations
    return found


@pytest.mark.parametrize(
    ("own_insns", "elsewhere", "word"),
    [
        # All that the task no longer does another one does.
        (9_000, [1_000] * MANY, Word.SAME),
        (9_000, [1_500] * MANY, Word.SLOWER),
        (10_000, [1_000] * MANY, Word.SLOWER),
        (11_000, [0] * MANY, Word.SLOWER),
        (9_000, [100] * MANY, Word.FASTER),
        # What is below the margin, or not known, changes no word.
        (10_000, [40] * MANY, Word.SAME),
        (9_000, [0, 4_000] * (MANY // 2), Word.FASTER),
        # Few runs decide nothing of what begins now and then.
        (9_000, [1_500] * 4, Word.UNRESOLVED),
        (9_000, [100] * 4, Word.FASTER),
    ],
)
def test_other_tasks_change_a_word_where_they_decide(
    own_insns: int, elsewhere: list[int], word: Word
) -> None:
    found = effect((10_000, [0] * len(elsewhere)), (own_insns, elsewhere))
    assert found.verdict.word is word
    if word is Word.UNRESOLVED:
        assert found.verdict.runs_needed == MANY
        assert found.verdict.reason == "what other tasks do for it may outweigh it"


def test_work_that_a_task_takes_back_is_no_loss() -> None:
    assert effect((9_000, [1_000] * MANY), (10_000, [0] * MANY)).verdict.word is Word.SAME


@given(
    st.integers(9_000, 11_000),
    st.lists(st.integers(0, 2_000), min_size=MANY, max_size=MANY),
    st.lists(st.integers(0, 2_000), min_size=MANY, max_size=MANY),
)
def test_a_word_that_other_tasks_made_is_that_of_the_sum(
    own_insns: int, before: list[int], after: list[int]
) -> None:
    found = effect((10_000, before), (own_insns, after))
    assert found.costs
    if not found.verdict.reason.startswith("with what"):
        return
    (alone,) = compare_runs(runs(10_000, [0] * MANY), runs(own_insns, [0] * MANY)).operations
    assert alone.verdict.word is not found.verdict.word
    whole = own_insns - 10_000 + found.costs.background.effect.value
    sign = {Word.SLOWER: whole > 50, Word.FASTER: whole < -50, Word.SAME: abs(whole) <= 50}
    assert sign[found.verdict.word]


def test_a_gate_takes_the_sum_and_names_it() -> None:
    found = effect((10_000, [0] * MANY), (9_000, [1_500] * MANY))
    judged = judge_path(found, Fraction(0))
    assert judged.region == "op -10% instructions, +1500 in other tasks"
    assert decide_gate([judged]).exit is Exit.SLOWER
    assert judge_path(found, Fraction(1, 10)).word is Word.SAME
    moved = effect((10_000, [0] * MANY), (9_000, [1_000] * MANY))
    assert decide_gate([judge_path(moved, Fraction(0))]).exit is Exit.NOT_SLOWER


def test_a_small_change_of_its_own_does_not_hide_what_other_tasks_do() -> None:
    for own_insns in (9_990, 10_000, 10_010):
        found = effect((10_000, [0] * MANY), (own_insns, [590] * MANY))
        assert (found.verdict.word, found.verdict.reason) == (Word.SLOWER, WITH_OTHERS)
        assert judge_path(found, Fraction(5, 1000)).word is Word.SLOWER
        own = f"{own_insns - 10_000:+d} in the task, " if own_insns != 10_000 else ""
        assert cause_of(found) == f"{own}+590 in other tasks"


def windows(left: int, taken: int = 30) -> tuple[RegionCounts, RegionCounts, RegionCounts]:
    """Windows of 1000 ticks: after 100 iterations that took so many ticks, at rest, and busy."""
    ticks = 1000
    return (
        region("op", {own("f"): 7, interrupts("tick"): 50, other("g"): left}, 100, ticks + taken),
        region("empty", {own("sleep"): 5, interrupts("tick"): 20, other("k"): 30}, 1, ticks),
        region("busy", {user("spin"): 40, interrupts("tick"): 40, other("k"): 30}, 1, ticks + 40),
    )


@given(st.integers(0, 10**6), st.integers(0, 80))
def test_what_is_left_is_what_others_do_beyond_an_idle_guest(left: int, taken: int) -> None:
    found = left_work(*windows(left, taken))
    # At rest 50, and a tick's 20 for each 40 that a guest is busy.
    assert found == LeftWork(round(50 + left - 50 - Fraction(taken, 2)), 100)


def test_nothing_is_known_of_what_is_left_without_the_time() -> None:
    whole, rest, busy = windows(100)
    for at in range(3):
        ones = [whole, rest, busy]
        ones[at] = replace(ones[at], clock_ticks=None)
        assert left_work(*ones) is None
    assert left_work(whole, rest, rest) is None


@pytest.mark.parametrize(
    ("name", "leaves"),
    [("call_rcu", True), ("__queue_work.isra.0", True), ("kfree", False), ("rcu_core", False)],
)
def test_a_region_leaves_work_by_what_it_calls_itself(name: str, *, leaves: bool) -> None:
    assert leaves_work(region("op", {own("f"): 1, own(name): 1})) is leaves
    assert not leaves_work(region("op", {own("f"): 1, other(name): 1, interrupts(name): 1}))
    assert not leaves_work(region("op", {own("f"): 1, user(name): 1}))


def with_left(insns: int, left: list[int | None], elsewhere: int = 0) -> list[RunCounts]:
    """Runs in which an iteration leaves so much to others, who do so much meanwhile."""
    return [
        RunCounts(
            tuple(
                replace(one, left=None if insns_left is None else LeftWork(50 * insns_left, 50))
                for one in made.regions
            )
        )
        for made, insns_left in zip(runs(insns, [elsewhere] * len(left)), left, strict=True)
    ]


@pytest.mark.parametrize(
    ("own_insns", "left", "word"),
    [
        (9_000, [1_000] * MANY, Word.SAME),
        (9_000, [1_500] * MANY, Word.SLOWER),
        (9_000, [1_500] * 4, Word.UNRESOLVED),
        (9_000, [500] * 4, Word.FASTER),
    ],
)
def test_what_is_left_counts_and_not_what_is_done_meanwhile(
    own_insns: int, left: list[int | None], word: Word
) -> None:
    base = with_left(10_000, [None] * len(left), elsewhere=5_000)
    (found,) = compare_runs(base, with_left(own_insns, left)).operations
    assert found.verdict.word is word
    assert found.costs
    assert found.costs.left
    assert found.costs.left.effect.value == left[0]
    if word is not Word.SAME:
        part = {500: "-5.00%", 1_500: "+5.00%"}[left[0] or 0]
        said = f"-1000 in the task, +{left[0]} left to others: {part} in sum"
        assert cause_of(found) == said


@pytest.mark.parametrize(("calls", "is_known"), [("call_rcu", False), ("kfree", True)])
def test_what_was_not_counted_on_a_side_that_leaves_work_is_no_zero(
    calls: str, *, is_known: bool
) -> None:
    base = [run(region("op", {own("f"): 999_900, own(calls): 100}, 100))] * MANY
    counted = with_left(9_000, [1_000] * MANY)
    for sides in ((base, counted), (counted, base)):
        (found,) = compare_runs(*sides).operations
        assert found.costs
        assert bool(found.costs.left) is is_known
        assert (found.verdict.word is Word.SAME) is is_known


def test_regions_of_one_name_leave_the_sum() -> None:
    (made,) = with_left(10_000, [30])
    (one,) = made.regions
    both = merged_regions(RunCounts((one, replace(one, left=LeftWork(100, 50)))))["op"]
    assert both.left == LeftWork(1_600, 100)
    assert merged_regions(RunCounts((one, replace(one, left=None))))["op"].left is None


def test_what_other_tasks_decide_is_no_small_change_on_the_screen() -> None:
    sides = [runs(10_000, [one] * MANY) for one in (0, 590)]
    base, other = (KernelRuns(f"image:{name}", "0" * 64, "", ()) for name in "ab")
    report = CompareReport("w", {}, base, (Compared(other, compare_runs(*sides)),))
    text = path_text(pairs_of([report], MARGIN)[0])
    assert "1 slower. Slower by most: op 0% (+590 in other tasks" in text.replace("+0.00%", "0%")


def test_a_small_change_of_few_runs_is_open_where_more_is_left() -> None:
    (found,) = compare_runs(
        with_left(10_000, [None] * 4), with_left(10_010, [1_000] * 4)
    ).operations
    assert found.verdict.word is Word.UNRESOLVED
    assert found.verdict.runs_needed == MANY


def test_a_gate_does_not_pass_what_is_open_if_more_is_left() -> None:
    noisy = [9_990, 10_030] * (MANY // 2)
    sides = [
        [one for insns in noisy for one in with_left(insns, [left])] for left in (None, 1_000, 0)
    ]
    for other_side, bounded in ((sides[1], False), (sides[2], True)):
        (found,) = compare_runs(sides[0], other_side, margin=Fraction(0)).operations
        judged = judge_path(
            replace(found, verdict=Verdict(Word.UNRESOLVED)), Fraction(0), Fraction(1, 100)
        )
        assert judged.bounded is bounded
