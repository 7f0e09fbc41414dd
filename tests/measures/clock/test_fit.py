# SPDX-License-Identifier: GPL-2.0-or-later
"""What is expected of times, what is timed for it, and how verdicts by the clock fit it."""

from collections.abc import Sequence

import pytest

from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.effects.effects import Effects, OperationEffect, Verdict, Word
from kdelta.measures.clock.fit import (
    BY_CYCLES,
    BY_PATH,
    BY_PLACEMENT,
    DISAGREE,
    IN_PART,
    NO_DIFFERENCE,
    OWN_LINKS,
    PATH_SAME,
    Expected,
    expected_of,
    fit,
    fitted,
    worth_timing,
)
from kdelta.measures.model import Judgement, RunPair, RunSide
from kdelta.report.measured import Effect, MeasuredEffects

MARGIN = 0.01
SLOWER_BY_5 = Interval(0.04, 0.06)
NEAR = Interval(-0.001, 0.002)


def effect(word: Word, change: Interval = SLOWER_BY_5) -> Effect:
    return Effect("stat", word, change=change, reason="few pairs")


@pytest.mark.parametrize(
    ("expected", "clock", "words"),
    [
        (Expected(Word.SAME), Word.SAME, NO_DIFFERENCE),
        (Expected(Word.SAME), Word.SLOWER, PATH_SAME),
        (Expected(Word.SAME, Word.SAME, NEAR), Word.SAME, NO_DIFFERENCE),
        (Expected(Word.SAME, Word.SAME, SLOWER_BY_5), Word.SAME, DISAGREE),
        (Expected(Word.SAME, Word.SAME, Interval(0, 0.05)), Word.SAME, NO_DIFFERENCE),
        (Expected(Word.SAME, Word.SAME, SLOWER_BY_5), Word.SLOWER, BY_PLACEMENT),
        (Expected(Word.SAME, Word.SAME, Interval(0, 0.05)), Word.SLOWER, BY_PLACEMENT),
        (Expected(Word.SAME, Word.SAME, Interval(0, 0.03)), Word.SLOWER, DISAGREE),
        (Expected(Word.SAME, Word.SAME, Interval(-0.06, -0.04)), Word.SLOWER, DISAGREE),
        (Expected(Word.SLOWER), Word.SLOWER, BY_PATH),
        (Expected(Word.FASTER), Word.FASTER, BY_PATH),
        (Expected(Word.SLOWER, change=0.05), Word.SLOWER, BY_PATH),
        (Expected(Word.SLOWER, change=0.01), Word.SLOWER, BY_PATH),
        (Expected(Word.SLOWER, change=0.009), Word.SLOWER, IN_PART),
        (Expected(Word.FASTER), Word.SLOWER, DISAGREE),
        (Expected(Word.FASTER, Word.SLOWER, SLOWER_BY_5), Word.SLOWER, BY_CYCLES),
        (Expected(Word.MIXED, Word.SLOWER, SLOWER_BY_5), Word.SLOWER, BY_CYCLES),
        (Expected(Word.MIXED), Word.SLOWER, "the path is mixed"),
        (
            Expected(Word.SLOWER),
            Word.SAME,
            "the path is slower, and the time is not by more than the margin",
        ),
    ],
)
def test_words_of_path_placement_and_clock(expected: Expected, clock: Word, words: str) -> None:
    assert fit(effect(clock), expected, MARGIN) == words


def test_open_verdict_keeps_its_reason_and_a_disagreement_is_noted() -> None:
    found = MeasuredEffects("times", "ns", (effect(Word.UNRESOLVED),))
    assert fitted(found, {"stat": Expected(Word.SLOWER)}, MARGIN) == found
    found = MeasuredEffects("times", "ns", (effect(Word.SLOWER),), notes=("first",))
    first, note = fitted(found, {"stat": Expected(Word.FASTER)}, MARGIN).notes
    assert (first, note.partition(": ")[0]) == ("first", "clock and model disagree on stat")


def test_links_of_their_own_leave_placement_out() -> None:
    found = MeasuredEffects("times", "ns", (effect(Word.SLOWER),))
    (one,) = fitted(found, {"stat": Expected(Word.SAME)}, MARGIN, links=True).effects
    assert one.reason == OWN_LINKS


def test_model_cycles_are_expected_of_a_cpu_alone() -> None:
    path = Effects((OperationEffect("stat", Verdict(Word.SAME), None, None, None, ()),), ())
    cycles = Effect("stat", Word.FASTER, as_linked=NEAR)
    side = RunSide("base", None)
    judged = (Judgement(MeasuredEffects("model cycles", "model cycles", (cycles,))),)
    pair = RunPair(side, side, path, judged=judged)
    assert expected_of(pair, by_model=True) == {"stat": Expected(Word.SAME, Word.FASTER, NEAR)}
    assert expected_of(pair, by_model=False) == {"stat": Expected(Word.SAME)}


def first(names: Sequence[str], count: int) -> list[str]:
    return list(names)[:count]


def test_of_equal_operations_a_sample_is_timed() -> None:
    expected = {f"equal-{at}": Expected(Word.SAME) for at in range(5)}
    expected["path"] = Expected(Word.SLOWER)
    expected["open"] = Expected(Word.UNRESOLVED)
    expected["placed"] = Expected(Word.SAME, Word.SAME, Interval(0, 0.02))
    expected["near"] = Expected(Word.SAME, Word.SAME, NEAR)
    timed, left_out = worth_timing(expected, MARGIN, first)
    assert timed == ("equal-0", "equal-1", "equal-2", "path", "open", "placed")
    assert left_out == ("equal-3", "equal-4", "near")
    few = {"equal": Expected(Word.SAME)}
    assert worth_timing(few, MARGIN, first) == (("equal",), ())
