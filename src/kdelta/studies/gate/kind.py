# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta gate` as a kind of study: its report, question, JSON and text."""

from kdelta.infer.effects.gate import Judged
from kdelta.report.json import Shape
from kdelta.report.kind import Kind
from kdelta.studies.compare.kind import asked_between
from kdelta.studies.gate.document import ANSWERS, GateReport, document, printed


def _question(one: GateReport) -> str:
    compared = one.compared
    return asked_between(compared, "slower") if compared else "Is the other kernel slower?"


def _answer(report: GateReport) -> str:
    """The exit code in words."""
    return ANSWERS[report.decision.exit]


_SHAPES: dict[type, Shape] = {
    GateReport: Shape(adds={"answer": _answer, "machines": "compared"}, flat=("decision",)),
    Judged: Shape(adds={"name": "id", "text": "region"}, later=("bounded",)),
}

KIND = Kind(
    report=GateReport,
    json="kdelta.gate/1",
    document=lambda s: document(s, s.one(GateReport)),
    printed=lambda s: printed(s, s.one(GateReport)),
    question=_question,
    shapes=_SHAPES,
)
