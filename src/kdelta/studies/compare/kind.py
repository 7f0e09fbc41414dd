# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta compare` as a kind of study: its report, question, JSON and text."""

from collections.abc import Sequence

from kdelta.report import words
from kdelta.report.document import Document
from kdelta.report.kind import ALL, Kind
from kdelta.report.shortened import shortened
from kdelta.report.stored import Stored
from kdelta.studies.compare.answer import least_of, pairs_of
from kdelta.studies.compare.document import compare_document
from kdelta.studies.compare.first_screen import first_screen
from kdelta.studies.compare.model import (
    CompareReport,
    ComparisonReport,
    comparison,
)


def _question(*reports: CompareReport) -> str:
    return asked_between(reports, "faster or slower")


def asked_between(reports: Sequence[CompareReport], word: str) -> str:
    """Return whether one kernel is `word` than another, as a question."""
    first = reports[0]
    others = words.listed([one.side.spec for one in first.others])
    is_or_are = "Is" if len(first.others) == 1 else "Are"
    cpus = [report.cpu.name for report in reports if report.cpu]
    on = f" on {words.listed(cpus)}" if cpus else ""
    return f"{is_or_are} {others} {word} than {first.base.spec} under {first.workload}{on}?"


def _printed(stored: Stored) -> Document:
    """The first screen, or all with as many functions of as many operations as were asked for."""
    reports = stored.of(CompareReport)
    found = compare_document(stored, reports, stored.shown.get("functions", 10))
    if ALL not in stored.shown:
        return first_screen(found, pairs_of(reports, least_of(stored)))
    return shortened(found, "functions", "folds", stored.shown.get("explain", 5))


KIND = Kind(
    report=CompareReport,
    json="kdelta.compare/4",
    document=lambda s: compare_document(s, s.of(CompareReport)),
    printed=_printed,
    question=_question,
    whole=(ComparisonReport, comparison),
)
