# SPDX-License-Identifier: GPL-2.0-or-later
"""More runs of what a few leave to chance: which are made, and what is reported then."""

import asyncio
import itertools
import json
from fractions import Fraction
from pathlib import Path

import pytest

from kdelta.counts.model import RunCounts
from kdelta.cpus import load_cpu
from kdelta.guests.job import Job
from kdelta.infer.effects.chance import ENOUGH, MOVED
from kdelta.infer.effects.effects import MARGIN, Word
from kdelta.infer.effects.estimate import LOOKS, PAIR_LOOKS
from kdelta.lab.lab import RunPlan
from kdelta.lab.request import LabRequest
from kdelta.lab.work import Work
from kdelta.measures.cycles.effects import Cycles, Traced
from kdelta.measures.path.judges import LEFT_OPEN, CountedKernel, Judge, SharedCode
from kdelta.measures.path.measure import path_judge
from kdelta.spec.errors import UserError
from kdelta.store.store import Store
from kdelta.studies.compare.assemble import compare_reports
from kdelta.studies.compare.model import comparison
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import run_compare
from kdelta.studies.documents import document_text
from kdelta.studies.gate.request import GateRequest
from kdelta.studies.gate.study import failures_of, judge, run_gate
from tests.lab.fake_lab import (
    FIRST,
    OPERATIONS,
    SETTLED_MIB,
    TIMER,
    CostsByName,
    by_chance,
    compared,
    kernel,
    never,
    operation,
    words,
)
from tests.lab.test_same_code import digest
from tests.report.test_text import compare_text
from tests.synthetic import interrupts, own, region, run


def test_what_came_by_chance_is_the_same(lab: CostsByName, tmp_path: Path) -> None:
    (found,) = compared(lab, tmp_path, "base", "lucky")
    assert words(found) == {
        "getppid": Word.SAME,
        "chdir": Word.SLOWER,
        "signal-handler": Word.SAME,
    }
    alone = ("signal-handler",)
    assert lab.ran == [
        ("base", OPERATIONS, range(FIRST)),
        ("lucky", OPERATIONS, range(FIRST)),
        ("base", alone, range(FIRST, ENOUGH)),
        ("lucky", alone, range(FIRST, ENOUGH)),
    ]
    (more,) = found.more
    assert (more.operation, len(more.base), len(more.other)) == ("signal-handler", 5, 5)
    assert len(found.base.done) == len(found.other.done) == 3
    same = operation(found, "signal-handler")
    assert same.costs
    assert (same.costs.insns.effect.n, same.costs.insns.effect.value) == (
        8,
        Fraction(6 * 953, 8 * 100),
    )
    chdir = operation(found, "chdir")
    assert chdir.costs
    assert chdir.costs.insns.effect.n == 3


def test_levels_within_the_margin_by_twice_as_many_runs_are_the_same(
    lab: CostsByName, tmp_path: Path
) -> None:
    (found,) = compared(lab, tmp_path, "near", "near too")
    looks = [runs for _, names, runs in lab.ran if names == ("signal-handler",)]
    assert looks == [range(3, 8), range(3, 8), range(8, 16), range(8, 16)]
    shown = operation(found, "signal-handler")
    assert shown.verdict.word is Word.SAME
    assert shown.costs
    effect = shown.costs.insns.effect
    assert (effect.n, effect.value) == (15, Fraction(0)), "pairs that are shaken"
    assert shown.verdict.within == effect.high <= MARGIN * shown.costs.insns.base.value


def test_levels_that_many_runs_would_not_decide_are_unresolved(
    lab: CostsByName, tmp_path: Path
) -> None:
    (found,) = compared(lab, tmp_path, "far", "far too")
    assert [runs for _, names, runs in lab.ran if names == ("signal-handler",)] == [
        range(3, 8),
        range(3, 8),
    ]
    verdict = operation(found, "signal-handler").verdict
    assert verdict.word is Word.UNRESOLVED
    assert "more than 64 runs a side would probably decide" in verdict.reason


def test_margin_of_a_request_decides_what_is_the_same(lab: CostsByName, tmp_path: Path) -> None:
    def word(margin: Fraction) -> Word:
        request = CompareRequest(base="far", others=("far too",), path_margin=margin)
        with Store.open(tmp_path / "store") as store:
            (found,) = asyncio.run(run_compare(request, lab.in_store(store)))
        return operation(found, "signal-handler").verdict.word

    assert word(Fraction(1, 10)) is Word.SAME
    assert word(Fraction(1, 100)) is Word.UNRESOLVED
    assert lab.ran


def test_gate_leaves_out_what_is_named(lab: CostsByName, tmp_path: Path) -> None:
    def answer(*left_out: str) -> tuple[int, tuple[str, ...]]:
        compare = CompareRequest(base="far", others=("far too",))
        with Store.open(tmp_path / "store") as store:
            request = GateRequest(compare=compare, left_out=left_out)
            found = asyncio.run(run_gate(request, lab.in_store(store)))
        return found.decision.exit, found.notes

    assert answer() == (125, ())
    assert answer("signal-handler") == (0, ("left out: signal-handler",))
    with pytest.raises(UserError, match="signal-handle"):
        answer("signal-handle")
    assert lab.ran


def test_what_differs_in_the_same_code_takes_more_runs(lab: CostsByName, tmp_path: Path) -> None:
    lab.image = "/vmlinuz"
    (found,) = compared(lab, tmp_path, "base", "lucky")
    assert words(found)["chdir"] is Word.SLOWER
    alone = ("chdir", "signal-handler")
    assert lab.ran[2:] == [
        (spec, names, runs)
        for names, runs in ((alone, range(FIRST, ENOUGH)), (("chdir",), range(ENOUGH, LOOKS[1])))
        for spec in ("base", "lucky")
    ]


@pytest.mark.parametrize(("body", "runs"), [(1, LOOKS[1]), (2, FIRST)])
def test_kernels_that_are_built_have_digests_that_show_the_same_code(
    lab: CostsByName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: int, runs: int
) -> None:
    digests = {
        "base": digest({"kernel/f.o": {"f": 1}}),
        "lucky": digest({"kernel/f.o": {"f": body}}, data_f=9),
    }
    monkeypatch.setattr(
        "kdelta.measures.path.shared.kept_digest", lambda kernel: digests[kernel.spec]
    )
    (found,) = compared(lab, tmp_path, "base", "lucky")
    chdir = operation(found, "chdir")
    assert chdir.costs
    assert (chdir.verdict.word, chdir.costs.insns.effect.n) == (Word.SLOWER, runs)
    assert lab.ran


def test_what_is_real_stays_so(lab: CostsByName, tmp_path: Path) -> None:
    (found,) = compared(lab, tmp_path, "base", "slow")
    assert words(found)["signal-handler"] is Word.SLOWER
    assert len(lab.ran) == 4
    assert len(found.more) == 1


def test_all_runs_are_on_the_machine_that_was_settled_on(lab: CostsByName, tmp_path: Path) -> None:
    compared(lab, tmp_path, "base", "lucky", "slow")
    assert lab.settled_for == [["base", "lucky", "slow"]]
    assert len(lab.made) > 3
    assert {one.request.machine.memory_mib for one in lab.made} == {SETTLED_MIB}


def test_no_doubt_no_run(lab: CostsByName, tmp_path: Path) -> None:
    (found,) = compared(lab, tmp_path, "base", "half")
    assert set(words(found).values()) == {Word.SAME}
    assert found.more == ()
    assert len(lab.ran) == 2
    (many,) = compared(lab, tmp_path, "base", "slow", perturbations=ENOUGH)
    assert words(many)["signal-handler"] is Word.SLOWER
    assert many.more == ()
    (one,) = compared(lab, tmp_path, "base", "slow", perturbations=1)
    assert words(one)["signal-handler"] is Word.UNRESOLVED
    assert one.more == ()


def test_the_bases_runs_serve_all_others(lab: CostsByName, tmp_path: Path) -> None:
    found = compared(lab, tmp_path, "base", "lucky", "half", "slow")
    assert [words(one)["signal-handler"] for one in found] == [
        Word.SAME,
        Word.SAME,
        Word.SLOWER,
    ]
    assert [len(one.more) for one in found] == [1, 0, 1]
    assert [name for name, operations, _ in lab.ran if len(operations) == 1] == [
        "base",
        "lucky",
        "slow",
    ]


def test_a_pair_is_judged_alike_whatever_else_is_compared(lab: CostsByName, tmp_path: Path) -> None:
    several = compared(lab, tmp_path, "near", "near too", "lucky")
    (alone,) = compared(lab, tmp_path, "near", "lucky")
    assert operation(several[1], "signal-handler") == operation(alone, "signal-handler")
    assert [len(one.more[0].base) for one in several] == [16 - FIRST, len(alone.more[0].base)]
    assert len(alone.more[0].base) == len(alone.more[0].other) == ENOUGH - FIRST
    assert lab.ran


def test_runs_that_fail_leave_it_open(lab: CostsByName, tmp_path: Path) -> None:
    (found,) = compared(lab, tmp_path, "base", "broken")
    open_ = operation(found, "signal-handler")
    assert (open_.verdict.word, open_.verdict.reason) == (Word.UNRESOLVED, LEFT_OPEN)
    assert list(failures_of(found)) == ["other, signal-handler: timed-out: 600 s"] * 3
    with Store.open(tmp_path / "store") as store:
        text = compare_text(*compare_reports([found], store))
        request = GateRequest(compare=CompareRequest(base="base", others=("broken",)))
        answer = asyncio.run(run_gate(request, lab.in_store(store)))
    assert "other, signal-handler alone, perturbation 4: timed-out: 600 s" in text
    assert f"signal-handler is unresolved: {LEFT_OPEN}" in " ".join(text.split())
    assert int(answer.decision.exit) == 125
    assert len(lab.ran) == 8


def test_the_gate_takes_what_more_runs_log(lab: CostsByName, tmp_path: Path) -> None:
    (lucky,) = compared(lab, tmp_path, "base", "lucky")
    (slow,) = compared(lab, tmp_path, "base", "slow")
    assert lab.ran
    said = [{one.region: one.word for one in judge(found, Fraction(0))} for found in (lucky, slow)]
    assert said[0]["signal-handler"] is Word.SAME
    assert said[1]["signal-handler +0.256% instructions"] is Word.SLOWER


def test_reports_log_what_was_run_more_often(lab: CostsByName, tmp_path: Path) -> None:
    found = compared(lab, tmp_path, "base", "lucky", "slow")
    with Store.open(tmp_path / "store") as store:
        reports = compare_reports(found, store)
    text = compare_text(*reports)
    line = "5 more runs on each kernel, since fewer may differ so by chance: signal-handler"
    assert line in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80
    document = json.loads(document_text(comparison(reports), "0"))
    for other in document["machines"][0]["others"]:
        (more,) = other["more"]
        assert more["operation"] == "signal-handler"
        assert [len(more[side]) for side in ("base", "other")] == [5, 5]
        assert {one["from_store"] for one in more["base"]} == {True}
        operations = other["effects"]["operations"]
        counted = {one["name"]: one["costs"]["insns"]["effect"]["n"] for one in operations}
        assert counted == {"getppid": 3, "chdir": 3, "signal-handler": 8}


def test_model_cycles_are_judged_with_that_spread(
    lab: CostsByName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[list[RunCounts]] = []

    def between(base: Traced, other: Traced, *_: object, **__: object) -> Cycles:
        judged.append([*base.counts, *other.counts])
        return Cycles(())

    monkeypatch.setattr("kdelta.measures.cycles.measure.cycles_between", between)
    zen2, zen3 = (load_cpu(name) for name in ("zen2", "zen3"))
    found = compared(lab, tmp_path, "base", "lucky", cpus=(zen2, zen3))
    assert [one.cpu and one.cpu.name for one in found] == ["zen2", "zen3"]
    for one, counts in zip(found, judged, strict=True):
        assert words(one)["signal-handler"] is Word.SAME
        assert [len(one.done) for one in (one.base, one.other)] == [3, 3]
        assert len(counts) == 2 * ENOUGH
    # Another machine: nothing of the first one's serves it.
    assert [names for _, names, _ in lab.ran] == [OPERATIONS] * 2 + [
        *[("signal-handler",)] * 2,
        *[OPERATIONS] * 2,
        *[("signal-handler",)] * 2,
    ]


def test_operations_that_make_each_others_state_are_all_run_alone(
    lab: CostsByName, tmp_path: Path
) -> None:
    request = LabRequest(perturbations=FIRST)
    costs = {"base": never, "lucky": by_chance}
    sides = [
        CountedKernel(
            kernel(spec),
            tuple(
                run(
                    region(
                        "signal-handler",
                        {own("f"): 781_758 + cost(at), interrupts("tick"): TIMER + at},
                    )
                )
                for at in range(FIRST)
            ),
        )
        for spec, cost in costs.items()
    ]
    with Store.open(tmp_path / "store") as store:
        chance = Judge(
            lab.in_store(store).with_request(request), OPERATIONS.__contains__,
            lambda _, operations: RunPlan("w", "b" * 64, Job(argv=operations), {}),
            own_starts=False,
        )  # fmt: skip
        found = asyncio.run(chance.judge(sides[0], sides[1]))
    alone = ("signal-handler",)
    assert lab.ran == [("base", alone, range(ENOUGH)), ("lucky", alone, range(ENOUGH))]
    assert [len(one.base) for one in found.more] == [ENOUGH]
    assert found.effects.operations[0].costs
    assert found.effects.operations[0].costs.insns.effect.n == ENOUGH


def test_what_cannot_be_run_alone_is_left_open(lab: CostsByName, tmp_path: Path) -> None:
    sides = [
        CountedKernel(
            kernel(name),
            tuple(
                run(region("own-name", {own("f"): 1000 + by, interrupts("tick"): by}))
                for _ in range(3)
            ),
        )
        for name, by in (("base", 1), ("slow", 9))
    ]
    with Store.open(tmp_path / "store") as store:
        chance = path_judge(Work(), lab.in_store(store))
        found = asyncio.run(chance.judge(sides[0], sides[1]))
        moved = asyncio.run(chance.judge(sides[0], sides[1], SharedCode(["own-name"])))
    assert lab.ran == []
    assert (found.effects.operations[0].verdict.word, found.more) == (Word.UNRESOLVED, ())
    # The same code relinked has a verdict, and nothing to be told.
    assert moved.effects.operations[0].verdict.reason == MOVED


def test_kernels_that_are_alike_are_run_until_their_pairs_decide(
    lab: CostsByName, tmp_path: Path
) -> None:
    """Levels that both have in the same runs are no difference, after the first ones."""
    lab.release = "6.12.117"
    (found,) = compared(lab, tmp_path, "far", "far too", perturbations=4)
    both = operation(found, "signal-handler")
    assert (both.verdict.word, both.verdict.within) == (Word.SAME, Fraction(0))
    assert len(lab.ran) == 2
    (found,) = compared(lab, tmp_path, "near", "base", perturbations=4)
    one = operation(found, "signal-handler")
    runs = [runs for _, names, runs in lab.ran[4:] if names == ("signal-handler",)]
    starts = (4, *PAIR_LOOKS)
    assert runs[::2] == [range(*ends) for ends in itertools.pairwise(starts)]
    assert one.costs
    effect = one.costs.insns.effect
    assert (effect.paired, effect.n) == (True, PAIR_LOOKS[-1] - 1)
    assert one.verdict.word is Word.UNRESOLVED, "a boot has one level in all of its runs"
