# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures that are asked of pairs of kernels: each pair once, and notes that say what about."""

import asyncio
from collections.abc import Mapping

import msgspec

from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.effects.effects import Word
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import Lab
from kdelta.lab.wanted import RunResult
from kdelta.measures.model import Judgement, Measure, RunPair, RunSide
from kdelta.report.measured import Effect
from kdelta.spec.run import RunStatus
from kdelta.studies.search.pairs import PairJudge, not_known, pairs_of
from tests.lab.fake_lab import FakeLab
from tests.report.example import stored
from tests.synthetic import own, region, run


class Noted(Measure):
    """Says of each kernel what notes it has."""

    name = "toys"
    unit = "toys"

    def __init__(self, notes: Mapping[str, tuple[str, ...]]) -> None:
        self.notes = notes
        self.asked: list[str] = []

    def judge(self, _lab: Lab, pair: RunPair) -> Judgement | None:
        """Return an effect on each region, and the notes of the other kernel."""
        self.asked.append(f"{pair.workload} {pair.other.spec}")
        end = Interval(1, 1)
        effects = [Effect(one.name, Word.SAME, end, end) for one in pair.path.operations]
        found = self.found(effects, self.notes.get(pair.other.spec, ()))
        return Judgement(msgspec.structs.replace(found, left_out=("getppid",)))


def side(kernel: str, workload: str, *regions: str) -> RunSide:
    counts = run(*(region(name, {own("f"): 100}, 10) for name in regions))
    ended = msgspec.structs.replace(stored(0, RunStatus.OK), workload=workload)
    identity = Kernel(kernel, kernel, "", "x86_64", "6.12")
    return RunSide(kernel, identity, (RunResult(ended, counts),))


def kernel(name: str) -> dict[str, RunSide]:
    """Return a kernel under two workloads, of whose regions one has the same name."""
    return {"w": side(name, "w", "read", "stat"), "v": side(name, "v", "read")}


def pairs(other: str) -> dict[str, RunPair]:
    return pairs_of(kernel("a"), kernel(other))


def judge(measure: Measure) -> PairJudge:
    return PairJudge([measure], FakeLab(), lambda region, workload: f"{workload}/{region}")


def test_regions_have_the_names_of_the_study_and_others_are_left_out() -> None:
    pair = asyncio.run(judge(Noted({})).ask("x", pairs("b"), {"w/read", "v/read", "w/other"}))
    (found,) = pair
    assert [one.region for one in found.effects] == ["w/read", "v/read"]
    assert found.left_out == ("w/getppid", "v/getppid")


def test_a_pair_is_measured_once_whatever_changes_it_shows() -> None:
    measure = Noted({})
    asked = judge(measure)
    for name, other in (("all", "b"), ("one", "b"), ("two", "c")):
        asyncio.run(asked.ask(name, pairs(other), {"w/read"}))
    assert measure.asked == ["w b", "v b", "w c", "v c"]
    assert list(asked.judged.pairs) == ["all", "one", "two"]
    assert asked.judged.measured("one") == asked.judged.measured("all") != ()
    assert asked.judged.measured("three") == ()


def test_notes_name_the_changes_that_they_are_about() -> None:
    asked = judge(Noted({"b": ("emulated", "7 pairs"), "c": ("emulated", "9 pairs")}))
    for name, other in (("all", "b"), ("one", "b"), ("two", "c")):
        asyncio.run(asked.ask(name, pairs(other), {"w/read"}))
    assert asked.judged.notes == (
        "w: emulated",
        "all, one: w: 7 pairs",
        "v: emulated",
        "all, one: v: 7 pairs",
        "two: w: 9 pairs",
        "two: v: 9 pairs",
    )


def test_kernels_of_which_no_run_went_well_show_nothing() -> None:
    measure = Noted({})
    assert asyncio.run(judge(measure).ask("x", pairs_of(kernel("a"), {}), {"w/read"})) == ()
    assert measure.asked == []


def test_what_was_not_measured_is_named() -> None:
    measures = [Noted({})]
    assert not_known(measures, "nothing was found") == ("toys are not known: nothing was found",)
    assert not_known(measures, "why", ["a", "b"]) == ("toys are not known of a, b: why",)
