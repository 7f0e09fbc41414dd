# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta log` as a kind of study: its report, question and JSON."""

from kdelta.report import words
from kdelta.report.kind import Kind
from kdelta.report.shortened import explained
from kdelta.studies.log.document import log_document
from kdelta.studies.log.model import HistoryReport


def _question(one: HistoryReport) -> str:
    what = f"{words.listed(one.operations)} of {one.workload}" if one.operations else one.workload
    kernels = sum(len(series.kernels) for series in one.series)
    return f"How did {what} move over {kernels} kernels?"


KIND = Kind(
    report=HistoryReport,
    json="kdelta.log/3",
    document=log_document,
    printed=explained(log_document, "history", "folds", 8),
    question=_question,
)
