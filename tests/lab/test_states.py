# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts that another starting state or another CPU speed turns round."""

import asyncio
from fractions import Fraction
from typing import Any, cast

import pytest

from kdelta.counts.model import RunCounts
from kdelta.infer.effects.effects import Effects, Verdict, Word, compare_runs
from kdelta.kernels.model import Kernel
from kdelta.lab.budget import INSNS_A_SECOND, Budget, cost_of_operation
from kdelta.lab.lab import RunPlan, RunResult
from kdelta.measures.model import RunSide
from kdelta.measures.path.judges import NOT_IN_STATES, OtherStates, depends_on_state
from kdelta.spec.run import MachineOptions, RunStatus
from kdelta.studies.compare.study import Comparison
from kdelta.studies.gate.study import judge
from tests.lab.fake_lab import FakeLab
from tests.report.example import stored
from tests.synthetic import own, region, run

SWITCH = own("__switch_to_asm")


def _run(insns: int, *also: str) -> RunCounts:
    """One operation with so many instructions an iteration, of which a switch is one."""
    parts = {own("f"): 100 * (insns - 1), own("memcpy"): 0, SWITCH: 100}
    return run(region("op", parts), *(region(name, {own("f"): 100 * insns}) for name in also))


KERNELS = Kernel("a" * 64, "base", "", "x86_64", ""), Kernel("b" * 64, "other", "", "x86_64", "")


class OtherMachines(FakeLab):
    """Runs of the operation on the machines of these names, of both kernels."""

    def __init__(self, costs: dict[str, tuple[int, int]]) -> None:
        super().__init__()
        self._costs = costs

    def run(self, kernel: Kernel, _work: RunPlan, index: int) -> RunResult:
        costs = self._costs[_name(self.request.machine)]
        return RunResult(stored(index, RunStatus.OK), _run(costs[KERNELS.index(kernel)]))


def _judged(
    usual: tuple[int, int],
    there: dict[str, tuple[int, int]],
    budget: Budget | None = None,
) -> tuple[Effects, list[tuple[str, ...]]]:
    """The effects of two kernels in the usual state, judged by what they cost in others; and what
    was run there.
    """
    lab = OtherMachines(there)
    sides = [[_run(insns, "plain")] * 3 for insns in usual]
    judge = OtherStates(lab, cast(Any, lambda _, names: names), budget)
    effects = compare_runs(*sides)
    return asyncio.run(judge.judge(effects, KERNELS, [*sides[0], *sides[1]])), [
        cast("tuple[str, ...]", one.work) for one in lab.made
    ]


def _name(machine: MachineOptions) -> str:
    return "load" if machine.loaded else f"shift {machine.icount_shift}"


def _verdict(effects: Effects) -> Verdict:
    return next(one.verdict for one in effects.operations if one.name == "op")


@pytest.mark.parametrize(
    ("load", "shift", "word"),
    [
        ((1000, 1200), (1000, 1100), Word.SLOWER),
        ((1000, 900), (1000, 1100), Word.DEPENDS_ON_STATE),
        ((1000, 1200), (1000, 900), Word.DEPENDS_ON_SPEED),
        ((1000, 1000), (1000, 1000), Word.SLOWER),
        ((100000, 99999), (1000, 1100), Word.SLOWER),  # less than a thousandth the other way
    ],
)
def test_a_sign_that_turns_takes_the_verdict_back(
    load: tuple[int, int], shift: tuple[int, int], word: Word
) -> None:
    effects, asked = _judged((1000, 1100), {"load": load, "shift 2": shift})
    assert _verdict(effects).word is word
    assert (
        asked == [("op",)] * 4
    )  # not the one without a switch, and on both kernels in both states
    if word is not Word.SLOWER:
        assert _verdict(effects).reason.startswith("+10 % from the snapshot, -10 % ")


def test_what_is_open_already_is_not_run_again() -> None:
    same = {"load": (1000, 900), "shift 2": (1000, 900)}
    effects, asked = _judged((1000, 1000), same)
    assert _verdict(effects).word is Word.SAME
    assert asked == []


def test_a_budget_that_ends_before_other_states_is_a_warning() -> None:
    there = {"load": (1000, 900), "shift 2": (1000, 900)}
    whole = 4 * cost_of_operation("op", [_run(1100)]).whole
    enough, too_little = (Budget(Fraction(insns, INSNS_A_SECOND)) for insns in (whole, whole - 1))
    effects, asked = _judged((1000, 1100), there, enough)
    assert (_verdict(effects).word, effects.warnings) == (Word.DEPENDS_ON_STATE, ())
    assert len(asked) == 4
    effects, asked = _judged((1000, 1100), there, too_little)
    assert (_verdict(effects), asked) == (Verdict(Word.SLOWER, reason=NOT_IN_STATES), [])
    assert effects.warnings == (f"{NOT_IN_STATES}: op",)
    side = RunSide("", None)
    (op, _) = sorted(
        judge(Comparison("w", side, side, effects), Fraction(0)), key=lambda one: one.id
    )
    assert (op.region, op.word, op.reason) == ("op", Word.UNRESOLVED, NOT_IN_STATES)


@pytest.mark.parametrize("name", ["__switch_to_asm", "wake_up_new_task", "new_slab"])
def test_a_switch_a_fork_and_a_refill_depend_on_state(name: str) -> None:
    counts = [run(region("op", {own("f"): 100, own(name): 1}), region("plain", {own("f"): 1}))]
    assert depends_on_state("op", "x86_64", counts)
    assert not depends_on_state("plain", "x86_64", counts)
