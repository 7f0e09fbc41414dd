# SPDX-License-Identifier: GPL-2.0-or-later
"""What a gate makes of operations that the path leaves mixed, and other measures decide."""

from fractions import Fraction

import msgspec
import pytest

from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.effects.effects import Effects, Verdict, Word, compare_runs
from kdelta.measures.model import Judgement, RunSide
from kdelta.report.measured import Effect, MeasuredEffects
from kdelta.studies.compare.study import Comparison
from kdelta.studies.gate.study import judge
from tests.synthetic import own, region, run


def mixed(*effects: Effect, weighs: bool = True) -> Comparison:
    runs = [run(region("stat", {own("f"): 1000})) for _ in range(3)]
    found = compare_runs(runs, runs)
    (stat,) = (
        msgspec.structs.replace(one, verdict=Verdict(Word.MIXED)) for one in found.operations
    )
    side = RunSide("image:a", None)
    measured = MeasuredEffects("times", "ns", effects, " by the clock", weighs=weighs)
    judged = (Judgement(measured),)
    return Comparison("syscalls", side, side, Effects((stat,), ()), judged=judged)


NOTHING = Interval(0.0, 0.0)


@pytest.mark.parametrize(
    ("weighs", "words"),
    [
        (True, {"stat by the clock": Word.SAME}),
        (False, {"stat": Word.MIXED, "stat by the clock": Word.SAME}),
    ],
)
def test_gate_mixed_decided_by_what_weighs_alone(weighs: bool, words: dict[str, Word]) -> None:
    comparison = mixed(Effect("stat", Word.SAME, change=NOTHING), weighs=weighs)
    assert {one.id: one.word for one in judge(comparison, Fraction(0))} == words


def test_gate_measure_without_a_figure_unresolved() -> None:
    (path, clock) = judge(mixed(), Fraction(0))
    assert (path.id, path.word) == ("stat", Word.MIXED)
    assert (clock.id, clock.word) == ("stat by the clock", Word.UNRESOLVED)
    assert clock.reason == "its times are not known"


def test_gate_doubt_is_no_pass() -> None:
    doubtful = Effect("stat", Word.FASTER, change=NOTHING, doubt="hlt: more of it")
    (clock,) = judge(mixed(doubtful), Fraction(0))
    assert (clock.word, clock.reason) == (Word.UNRESOLVED, "hlt: more of it")
