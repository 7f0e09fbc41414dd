# SPDX-License-Identifier: GPL-2.0-or-later
"""What a gate answered, as JSON."""

from typing import Literal

import msgspec

from kdelta.infer.gate import Judged
from kdelta.report.gate import ANSWERS
from kdelta.report.gate_model import GateReport
from kdelta.report.json import JsonMachine, document_text, json_machine


class JsonJudged(msgspec.Struct, frozen=True):
    """A verdict that was looked at; `reason` says why nothing is known, and `text` has the size.
    `bounded`: the upper bound of the effect is within the margin, so that "unresolved" passes.
    """

    name: str
    text: str
    word: str
    reason: str
    bounded: bool = False


class JsonGate(msgspec.Struct, frozen=True):
    """The answer of `kdelta gate`, its exit code, and the comparison that it is from."""

    schema: Literal["kdelta.gate/1"]
    kdelta: str
    answer: str
    exit: int
    because: list[str]
    judged: list[JsonJudged]
    notes: list[str]
    machines: list[JsonMachine]


def gate_json(report: GateReport, version: str) -> str:
    """An answer; `version` is kdelta's."""
    return document_text(
        JsonGate(
            schema="kdelta.gate/1",
            kdelta=version,
            answer=ANSWERS[report.decision.exit],
            exit=int(report.decision.exit),
            because=list(report.decision.because),
            judged=[_judged(one) for one in report.judged],
            notes=list(report.notes),
            machines=[json_machine(one) for one in report.compared],
        )
    )


def _judged(one: Judged) -> JsonJudged:
    return JsonJudged(one.id, one.region, one.word.value, one.reason, one.bounded)
