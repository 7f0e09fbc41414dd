# SPDX-License-Identifier: GPL-2.0-or-later
"""What code that differs costs more, in operations that vary by more than that."""

from fractions import Fraction

import pytest

from kdelta.counts.model import RunCounts
from kdelta.infer.effects.by_code import by_code, with_code
from kdelta.infer.effects.chance import DifferingCode
from kdelta.infer.effects.effects import Effects, Word, compare_runs
from tests.synthetic import own, region, run

TURNS = (0, 700, -300, 440, 90)
"""What the scheduler takes otherwise in the other kernel, by run."""


def effects_of(more: int, runs: int = 5, turns: tuple[int, ...] = TURNS) -> Effects:
    """An operation in which "sendmsg" costs so many instructions an iteration more."""

    def side(sent: int, turns: tuple[int, ...]) -> list[RunCounts]:
        costs = [{own("sendmsg.cold"): sent * 10, own("schedule"): 10_000 + by} for by in turns]
        return [run(region("op", one, 10)) for one in costs]

    return compare_runs(side(40, (0,) * runs), side(40 + more, turns[:runs]))


def marked(effects: Effects, code: DifferingCode) -> dict[str, Fraction]:
    (one,) = with_code(effects, lambda: code).operations
    return {row.name: row.cost.effect.value for row in by_code(one)}


DIFFERS: DifferingCode = {"op": {("kernel", "sendmsg.cold")}}


@pytest.mark.parametrize("more", [8, -3])
def test_what_differs_in_all_runs_by_its_code_is_told(more: int) -> None:
    effects = effects_of(more)
    assert effects.operations[0].verdict.word is Word.UNRESOLVED
    assert marked(effects, DIFFERS) == {"sendmsg": more}


def test_what_varies_or_has_the_same_code_is_not_told() -> None:
    both = {"op": {("kernel", "sendmsg"), ("kernel", "schedule")}}
    assert marked(effects_of(8), both) == {"sendmsg": 8}
    assert marked(effects_of(8), {"op": {("kernel", "schedule")}}) == {}
    assert marked(effects_of(8), {"op": ()}) == {}
    assert marked(effects_of(8), {}) == {}, "which code differs is not known"
    assert marked(effects_of(8, 3), DIFFERS) == {}, "three runs"


def test_an_operation_that_shows_it_is_not_looked_into() -> None:
    def fail() -> DifferingCode:
        raise AssertionError

    same = effects_of(0)
    assert with_code(same, fail) == same
    firm = effects_of(8, turns=(0,) * 5)
    assert firm.operations[0].verdict.word is Word.SLOWER
    assert with_code(firm, fail) == firm
