# SPDX-License-Identifier: GPL-2.0-or-later
"""How a verdict by the clock fits that on the path."""

import pytest

from kdelta.infer.effects.effects import Effects, OperationEffect, Verdict, Word
from kdelta.measures.clock.judged import next_to_path
from kdelta.measures.model import Effect, MeasuredEffects


@pytest.mark.parametrize(
    ("path", "clock", "words"),
    [
        (Word.SAME, Word.SAME, "no difference"),
        (Word.SLOWER, Word.SLOWER, "explained by the path"),
        (Word.FASTER, Word.FASTER, "explained by the path"),
        (Word.FASTER, Word.SLOWER, "clock and path disagree"),
        (Word.SAME, Word.SLOWER, "the path is the same: where the linker put the code"),
        (Word.SLOWER, Word.SAME, "the path is slower, and the time is not"),
        (Word.MIXED, Word.SLOWER, "the path is mixed"),
        (Word.SLOWER, Word.UNRESOLVED, "few pairs"),
    ],
)
def test_words_of_path_and_clock(path: Word, clock: Word, words: str) -> None:
    operation = OperationEffect("stat", Verdict(path), None, None, None, ())
    found = MeasuredEffects("times", "ns", (Effect("stat", clock, reason="few pairs"),))
    (effect,) = next_to_path(found, Effects((operation,), ())).effects
    assert effect.reason.startswith(words)
