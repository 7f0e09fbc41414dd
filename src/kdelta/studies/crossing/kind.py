# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta crossing` as a kind of study: its report, question and JSON."""

from kdelta.report.kind import Kind
from kdelta.report.shortened import explained
from kdelta.studies.crossing.document import crossing_document
from kdelta.studies.crossing.model import CrossingReport


def _question(one: CrossingReport) -> str:
    return f"What does crossing into the kernel cost {one.workload} on {one.variants[0].side.spec}?"


KIND = Kind(
    report=CrossingReport,
    json="kdelta.crossing/2",
    document=crossing_document,
    printed=explained(crossing_document, "operations", "rows", 60),
    question=_question,
)
