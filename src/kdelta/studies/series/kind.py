# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta series` as a kind of study: its report, question and JSON."""

from kdelta.report import words
from kdelta.report.kind import Kind
from kdelta.report.shortened import explained
from kdelta.studies.series.document import series_document
from kdelta.studies.series.model import SeriesReport


def _question(one: SeriesReport) -> str:
    what = f"each of {len(one.rows)} patches" if len(one.rows) != 1 else one.rows[0].name
    return f"What does {what} do on {one.tree} under {words.listed(one.workloads)}?"


KIND = Kind(
    report=SeriesReport,
    json="kdelta.series/2",
    document=series_document,
    printed=explained(series_document, "regions", "folds", 8),
    question=_question,
)
