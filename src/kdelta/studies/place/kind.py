# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta place` as a kind of study: its report, question and JSON."""

from kdelta.report import words
from kdelta.report.kind import Kind
from kdelta.studies.place.document import place_document
from kdelta.studies.place.model import PlaceReport


def _question(one: PlaceReport) -> str:
    return (
        f"Which order of functions would serve {one.kernel.spec} better under "
        f"{words.listed(one.workloads)}, on {one.cpu.name}?"
    )


KIND = Kind(
    report=PlaceReport,
    json="kdelta.place/3",
    document=lambda s: place_document(s, s.one(PlaceReport)),
    question=_question,
)
