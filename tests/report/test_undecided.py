# SPDX-License-Identifier: GPL-2.0-or-later
"""Regions of a search whose runs vary too much: named as open, and not called "not slower"."""

from fractions import Fraction

import msgspec
import pytest

from kdelta.infer.effects.effects import MARGIN
from kdelta.infer.effects.estimate import Estimate
from kdelta.report.document import Outcome
from kdelta.studies.kinds import document_of
from kdelta.studies.search.document import is_undecided, undecided_texts
from kdelta.studies.search.model import AblatedRegion
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
