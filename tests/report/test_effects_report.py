# SPDX-License-Identifier: GPL-2.0-or-later
"""What a document shows of a measure that found nothing, and of its notes."""

from kdelta.infer.effects.effects import Word
from kdelta.report import effects as sections
from kdelta.report.measured import Effect, MeasuredEffects

WHY = "not timed: the guest said nothing"


def test_first_screen_says_why_nothing_was_measured() -> None:
    found = MeasuredEffects("times", "nanoseconds", (), notes=(WHY,))
    assert sections.lines(found).items == (WHY,)
    assert sections.answer(found).sentences == ("Nothing was measured.",)


def test_first_screen_has_notes_behind_verdicts() -> None:
    found = MeasuredEffects("times", "ns", (Effect("stat", Word.SAME),), notes=("emulated",))
    assert sections.lines(found).items == ("same (1): stat", "emulated")
