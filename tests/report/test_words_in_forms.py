# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts that are not slower in what is counted, or not comparable, in every form of a report."""

import json
import re
import xml.etree.ElementTree as ET

import msgspec
import pytest

from kdelta.infer.cycles.placement_model import Bounds, ComparedEnsembles, CycleVerdict, Draws
from kdelta.infer.effects.effects import Verdict, Word
from kdelta.measures.cycles.words import SIGNS
from kdelta.report import words
from kdelta.report.document import Outcome
from kdelta.report.stored import Stored
from kdelta.studies.compare.model import CompareReport
from kdelta.studies.forms import FORMS
from tests.report.example_cycles import cycles_of, with_cycles, with_effects
from tests.report.shown import stored

REASON = "only base executes verw: other does without for want of microcode (tsa: No microcode)"


def with_words() -> CompareReport:
    """The example with model cycles not slower in one region; another is not comparable."""
    plain = with_cycles()
    (other,) = plain.others
    first, second, *rest = cycles_of(plain).placements.values()
    draws = [Draws(one, one, one, one, one, None) for one in (2.0, 4.0)]
    first = msgspec.structs.replace(
        first,
        verdict=CycleVerdict(Word.NOT_SLOWER, reason="nothing that is counted grows"),
        unpriced={"hlt": ComparedEnsembles(draws[0], draws[1], Bounds(2.0, 2.0, 2.0))},
    )
    second = msgspec.structs.replace(
        second, verdict=CycleVerdict(Word.NOT_COMPARABLE, reason=REASON)
    )
    operations = tuple(
        msgspec.structs.replace(one, verdict=Verdict(Word.NOT_COMPARABLE, reason=REASON))
        if one.name == second.region
        else one
        for one in other.effects.operations
    )
    effects = msgspec.structs.replace(other.effects, operations=operations)
    found = msgspec.structs.replace(other, effects=effects)
    plain = msgspec.structs.replace(plain, others=(found,))
    return with_effects(plain, (first, second, *rest))


def shown(form: str, **how: int) -> str:
    one: Stored = stored("compare", with_words())
    return FORMS[form].render(msgspec.structs.replace(one, shown=how))


@pytest.mark.parametrize("form", list(FORMS))
def test_both_words_and_the_reason_are_in_every_form(form: str) -> None:
    text = re.sub(r"\s+", " ", re.sub(r"\n[#>|* ]*", " ", shown(form)))
    assert Word.NOT_SLOWER in text
    assert Word.NOT_COMPARABLE in text
    assert "only base executes verw" in text


def test_text_names_what_has_no_price() -> None:
    assert "hlt, without a price 2 4 diff: +2;" in " ".join(shown("text", all=1).split())


def test_text_lists_a_path_that_is_not_comparable_with_its_figures_and_its_reason() -> None:
    text = " ".join(shown("text", all=1).split())
    region = cycles_of(with_words()).effects[1].region
    assert f"- {region} is not comparable: only base executes verw: other does" in text
    assert f"{region} 3209.27 3031.15 -178.12" in text


def test_json_has_what_has_no_price() -> None:
    (cycles,) = json.loads(shown("json"))["machines"][0]["others"][0]["measured"]
    found = cycles["effects"][0]["detail"]
    assert found["verdict"]["word"] == "not slower in what is counted"
    assert found["unpriced"]["hlt"]["effect"]["value"] == 2


def test_junit_passes_not_slower_and_skips_not_comparable() -> None:
    suites = ET.fromstring(shown("junit"))
    first, second, *_ = cycles_of(with_words()).effects
    cases = {
        case.get("name"): case
        for case in suites.iter("testcase")
        if "model cycles" in (case.get("classname") or "")
    }
    assert cases[first.region].find("skipped") is None
    assert cases[first.region].find("failure") is None
    assert cases[second.region].find("skipped") is not None


def test_every_word_has_its_place_in_every_form() -> None:
    for known in (words.ORDER, words.TONES, words.OUTCOMES, SIGNS):
        assert set(known) == set(Word)
    assert words.OUTCOMES[Word.NOT_SLOWER] is Outcome.OK
