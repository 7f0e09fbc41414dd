# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta diff` as a kind of study: its report, question and JSON."""

from kdelta.report.kind import Kind
from kdelta.studies.diff.document import diff_document
from kdelta.studies.diff.model import DiffReport


def _question(one: DiffReport) -> str:
    a, b = one.a.run, one.b.run
    return (
        f"What did each function gain and lose from {a.kernel_spec} (run {a.id}) to "
        f"{b.kernel_spec} (run {b.id}) under {b.workload}?"
    )


KIND = Kind(
    report=DiffReport,
    json="kdelta.diff/2",
    document=lambda s: diff_document(s, s.one(DiffReport)),
    printed=lambda s: diff_document(s, s.one(DiffReport), s.shown.get("functions", 40)),
    question=_question,
)
