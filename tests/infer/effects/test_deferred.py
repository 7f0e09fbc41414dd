# SPDX-License-Identifier: GPL-2.0-or-later
"""Work that moves to another task is no gain, and none that chance leaves there is a loss."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.counts.model import RunCounts
from kdelta.infer.effects.deferred import WITH_OTHERS
from kdelta.infer.effects.effects import OperationEffect, Word, compare
from kdelta.infer.effects.gate import Exit, decide, judge_path
from kdelta.report.model import Compared, CompareReport, KernelRuns
from kdelta.studies.compare.answer import LEAST, pair_of, path_text
from kdelta.studies.compare.causes import cause_of
from tests.synthetic import other, own, region, run

MANY = 8


def runs(insns: int, elsewhere: list[int]) -> list[RunCounts]:
    """A run for each figure of other tasks, an iteration."""
    return [
        run(region("op", {own("f"): 100 * insns, other("rcu_do_batch"): 100 * one}, 100))
        for one in elsewhere
    ]


def effect(base: tuple[int, list[int]], changed: tuple[int, list[int]]) -> OperationEffect:
    (found,) = compare(runs(*base), runs(*changed)).operations
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
        assert found.verdict.reason == "what other tasks do meanwhile may outweigh it"


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
    (alone,) = compare(runs(10_000, [0] * MANY), runs(own_insns, [0] * MANY)).operations
    assert alone.verdict.word is not found.verdict.word
    whole = own_insns - 10_000 + found.costs.background.effect.value
    sign = {Word.SLOWER: whole > 50, Word.FASTER: whole < -50, Word.SAME: abs(whole) <= 50}
    assert sign[found.verdict.word]


def test_a_gate_takes_the_sum_and_names_it() -> None:
    found = effect((10_000, [0] * MANY), (9_000, [1_500] * MANY))
    judged = judge_path(found, Fraction(0))
    assert judged.region == "op -10% instructions, +1500 in other tasks"
    assert decide([judged]).exit is Exit.SLOWER
    assert judge_path(found, Fraction(1, 10)).word is Word.SAME
    moved = effect((10_000, [0] * MANY), (9_000, [1_000] * MANY))
    assert decide([judge_path(moved, Fraction(0))]).exit is Exit.NOT_SLOWER


def test_a_small_change_of_its_own_does_not_hide_what_other_tasks_do() -> None:
    for own_insns in (9_990, 10_000, 10_010):
        found = effect((10_000, [0] * MANY), (own_insns, [590] * MANY))
        assert (found.verdict.word, found.verdict.reason) == (Word.SLOWER, WITH_OTHERS)
        assert judge_path(found, Fraction(5, 1000)).word is Word.SLOWER
        assert cause_of(found) == "+590 in other tasks"


def test_what_other_tasks_decide_is_no_small_change_on_the_screen() -> None:
    sides = [runs(10_000, [one] * MANY) for one in (0, 590)]
    base, other = (KernelRuns(f"image:{name}", "0" * 64, "", ()) for name in "ab")
    report = CompareReport("w", {}, base, (Compared(other, compare(*sides)),))
    text = path_text(pair_of(report, report.others[0], LEAST))
    assert "1 slower. Slower by most: op 0% (+590 in other tasks" in text.replace("+0.00%", "0%")
