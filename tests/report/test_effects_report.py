# SPDX-License-Identifier: GPL-2.0-or-later
"""What a document shows of a measure that found nothing, and of its notes."""

from kdelta.infer.effects.effects import Word
from kdelta.report import effects as sections
from kdelta.report.document import Items
from kdelta.report.measured import Effect, MeasuredEffects


def test_first_screen_says_why_nothing_was_measured() -> None:
    found = MeasuredEffects("times", "nanoseconds", (), notes=("not timed: the guest is silent",))
    assert sections.EffectsView().screen(found, ()).blocks == (Items(found.notes),)
    assert sections.answer(found).sentences == ("Nothing was measured.",)


def test_first_screen_has_notes_behind_verdicts() -> None:
    found = MeasuredEffects("times", "ns", (Effect("stat", Word.SAME),), notes=("emulated",))
    (items,) = sections.EffectsView().screen(found, ()).blocks
    assert items == Items(("same (1): stat", "emulated"))
