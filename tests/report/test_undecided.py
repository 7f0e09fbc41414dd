# SPDX-License-Identifier: GPL-2.0-or-later
"""Regions of a search whose runs vary too much: named as open, and not called "not slower"."""

from fractions import Fraction

import msgspec
import pytest

from kdelta.infer.effects.effects import MARGIN
from kdelta.infer.effects.estimate import Estimate
from kdelta.report.document import Outcome, Table, blocks
from kdelta.studies.bisect.model import BisectReport
from kdelta.studies.forms import FORMS
from kdelta.studies.kinds import document_of
from kdelta.studies.search.document import is_undecided, undecided_texts
from kdelta.studies.search.model import AblatedRegion, BisectedRegion
from tests.report.example_stored import EXAMPLES
from tests.report.shown import stored
from tests.report.test_ablation import REPORT, figure, region


def between(low: int, high: int) -> AblatedRegion:
    """A region of 10,000 instructions whose effect from end to end is in that interval."""
    whole = Estimate(Fraction(0), Fraction(low), Fraction(high), 4)
    made = region("unix-round-trip", 10_000, 10_000, 0)
    return msgspec.structs.replace(made, before=figure(10_000), whole=whole)


@pytest.mark.parametrize(
    ("low", "high", "undecided"),
    [(-430, 533, True), (-50, 50, False), (-51, 50, True), (1, 900, False), (0, 0, False)],
)
def test_region_is_undecided_by_its_interval_and_the_margin(
    low: int, high: int, undecided: bool
) -> None:
    assert MARGIN * 10_000 == 50
    assert is_undecided(between(low, high)) is undecided
    assert is_undecided(msgspec.structs.replace(between(low, high), rate=True)) is False


def test_undecided_region_is_named_in_notes_and_cases() -> None:
    report = msgspec.structs.replace(REPORT, regions=(*REPORT.regions, between(-430, 533)))
    found = document_of(stored("ablate", report))
    (note,) = undecided_texts(report.regions)
    assert note in found.notes
    assert note.startswith("unix-round-trip stays open: ")
    assert "-4.3 to +5.33 %" in note
    cases = {case.name: case for suite in found.suites for case in suite.cases}
    assert cases["unix-round-trip"].outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("kind", ["ablate", "bisect", "series"])
def test_decided_regions_are_not_named(kind: str) -> None:
    assert not any("stays open" in note for note in document_of(EXAMPLES[kind]).notes)


def bisected(report: BisectReport, low: int, high: int) -> BisectedRegion:
    """A region of 10,000 instructions with that interval, of which nothing was found."""
    whole = Estimate(Fraction(low + high, 2), Fraction(low), Fraction(high), 4)
    bad = Estimate(10_000 + whole.value, 10_000 + whole.low, 10_000 + whole.high, 4)
    return msgspec.structs.replace(
        report.regions[0],
        name="wide",
        before=figure(10_000),
        after=bad,
        whole=whole,
        explained=figure(0),
        remainder=whole,
    )


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (-430, 533, "unresolved"),
        (-50, 50, "same"),
        (1, 900, "slower"),
        (-900, -1, "faster"),
        (0, 0, "same"),
    ],
)
def test_a_bisection_calls_no_region_the_same_that_may_have_changed(
    low: int, high: int, word: str
) -> None:
    report = EXAMPLES["bisect"].one(BisectReport)
    wide = bisected(report, low, high)
    found = msgspec.structs.replace(report, regions=(*report.regions, wide))
    tables = [one for one in blocks(document_of(stored("bisect", found)).body)
              if isinstance(one, Table) and one.id == "regions-table"]  # fmt: skip
    (row,) = [row for row in tables[0].rows if row[0].text == "wide"]
    assert (row[1].text, row[1].tone) == (word, word)


def test_a_commit_whose_region_stays_open_is_not_said_to_have_changed_none() -> None:
    report = EXAMPLES["bisect"].one(BisectReport)
    wide = bisected(report, -430, 530)
    moved = msgspec.structs.replace(
        report.found[0], effects={}, moved=True, functions={"wide": {"f": figure(1060)}}
    )
    report = msgspec.structs.replace(report, regions=(*report.regions, wide), found=(moved,))
    text = " ".join(FORMS["text"].render(stored("bisect", report)).split())
    assert "changed functions in wide, whose runs vary too much for a word" in text
    decided = bisected(report, 0, 0)
    report = msgspec.structs.replace(report, regions=(*report.regions[:-1], decided))
    text = " ".join(FORMS["text"].render(stored("bisect", report)).split())
    assert "moved work between functions" in text
