# SPDX-License-Identifier: GPL-2.0-or-later
"""Further runs on a budget, and what is shown before they are made."""

import asyncio
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest

from kdelta.counts.model import LeftWork
from kdelta.cpus import CPU, load_cpu
from kdelta.infer.effects.chance import ENOUGH, SO_FAR
from kdelta.infer.effects.effects import Word
from kdelta.infer.effects.estimate import LOOKS
from kdelta.lab.budget import (
    INSNS_A_SECOND,
    Budget,
    RunCost,
    cost_of_operation,
    cost_of_runs,
)
from kdelta.lab.request import LabRequest
from kdelta.measures.cycles.effects import Cycles
from kdelta.measures.path.judges import BUDGET_ENDED, MAY_BE_CHANCE
from kdelta.store.store import Store
from kdelta.studies.compare.assemble import compare_reports
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import Comparison, run_compare
from tests.lab.fake_lab import (
    FIRST,
    CostsByName,
    compared,
    levels,
    never,
    operation,
    without_guests,
    words,
)
from tests.report.test_text import compare_text
from tests.synthetic import own, region, run


@pytest.mark.parametrize("cpus", [(), (load_cpu("zen3"),)])
def test_table_so_far_marks_what_is_run_further(
    lab: CostsByName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cpus: tuple[CPU, ...]
) -> None:
    monkeypatch.setattr(
        "kdelta.measures.cycles.measure.cycles_between", lambda *_, **__: Cycles(())
    )
    shown: list[Comparison] = []
    request = CompareRequest(
        base="base",
        others=("lucky",),
        cpus=cpus,
        lab=LabRequest(perturbations=FIRST),
        states=False,
    )
    with Store.open(tmp_path / "store") as store:
        (found,) = asyncio.run(run_compare(request, lab.in_store(store), shown.append))
        (early,) = shown
        text = compare_text(*compare_reports([early], store))
    assert len(lab.ran) == 4
    first, last = operation(early, "signal-handler"), operation(found, "signal-handler")
    assert (first.verdict.word, first.verdict.reason) == (Word.SLOWER, SO_FAR)
    assert (last.verdict.word, last.verdict.reason) == (Word.SAME, "")
    assert operation(early, "chdir") == operation(found, "chdir")
    assert text.count(SO_FAR) >= 1


@pytest.mark.usefixtures("own_cache")
def test_budget_buys_whole_rounds_the_widest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = CostsByName({"base": (never, 0), "other": (levels(953), 7)})
    without_guests(monkeypatch)

    def budgeted(insns: int) -> tuple[Comparison, list[tuple[str, ...]]]:
        seconds = Fraction(insns, INSNS_A_SECOND)
        request = CompareRequest(base="base", others=("other",), budget_seconds=seconds)
        lab.made.clear()
        with Store.open(tmp_path / "store") as store:
            lab_request = LabRequest(perturbations=FIRST)
            asked = msgspec.structs.replace(request, lab=lab_request)
            (found,) = asyncio.run(run_compare(asked, lab.in_store(store)))
        return found, [names for _, names, _ in lab.ran[2:]]

    # The same image: chdir is equal in all runs, which are too few, and has no width at all.
    lab.image = "/vmlinuz"
    (free,) = compared(lab, tmp_path, "base", "other")
    sides = free.base.counts, free.other.counts
    first = sum(cost_of_runs(side).whole for side in sides)
    further = ENOUGH - FIRST
    wide, narrow = (
        further * sum(cost_of_operation(name, side).whole for side in sides)
        for name in ("signal-handler", "chdir")
    )
    more = (LOOKS[1] - ENOUGH) * narrow // further
    found, made = budgeted(first + wide + narrow + more)
    rounds = [("chdir", "signal-handler")] * 2 + [("chdir",)] * 2
    assert (words(found), made) == (words(free), rounds)
    assert narrow > wide
    found, made = budgeted(first + narrow)
    assert made == [("signal-handler",)] * 2
    assert words(found)["signal-handler"] is Word.SAME
    chdir = operation(found, "chdir").verdict
    assert (chdir.word, chdir.reason) == (Word.UNRESOLVED, f"{MAY_BE_CHANCE}; {BUDGET_ENDED}")
    for less in (first + wide - 1, 0):
        found, made = budgeted(less)
        assert made == []
        assert words(found) == {
            "getppid": Word.SAME,
            "chdir": Word.UNRESOLVED,
            "signal-handler": Word.UNRESOLVED,
        }


def test_budget_never_refuses_what_costs_nothing() -> None:
    spent = Budget(Fraction(0))
    spent.spend(RunCost(1))
    assert spent.affords(RunCost())
    assert not spent.affords(RunCost(starts=1))
    assert spent.refused == RunCost(starts=1)


def test_an_operation_that_leaves_work_costs_another_start_and_an_idle_guest() -> None:
    plain = region("op", {own("f"): 1_000}, 10)
    leaving = msgspec.structs.replace(plain, left=LeftWork(500, 10))
    assert cost_of_operation("op", [run(plain)]) == RunCost(1_000, 1)
    assert cost_of_operation("op", [run(plain), run(leaving)]) == RunCost(2_000, 3)
    other = msgspec.structs.replace(leaving, name="other")
    assert cost_of_runs([run(leaving, other)]) == RunCost(4_000, 5)
    assert cost_of_operation("none", [run(plain)]) == RunCost(0, 1)
