# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta gate` as a kind of study: its report, question, JSON and text."""

from kdelta.report.kind import Kind
from kdelta.studies.compare.kind import asked_between
from kdelta.studies.gate.document import GateReport, gate_document, printed


def _question(one: GateReport) -> str:
    compared = one.compared
    return asked_between(compared, "slower") if compared else "Is the other kernel slower?"


KIND = Kind(
    report=GateReport,
    json="kdelta.gate/3",
    document=lambda s: gate_document(s, s.one(GateReport)),
    printed=lambda s: printed(s, s.one(GateReport)),
    question=_question,
)
