# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta place` as a kind of study: its report, question and JSON."""

from kdelta.report import words
from kdelta.report.json import Shape
from kdelta.report.kind import Kind
from kdelta.studies.place.document import document
from kdelta.studies.place.model import Applied, AppliedRegion, PlacedMisses, PlaceReport


def _question(one: PlaceReport) -> str:
    return (
        f"Which order of functions would serve {one.kernel.spec} better under "
        f"{words.listed(one.workloads)}, on {one.cpu.name}?"
    )


def _payers(report: PlaceReport) -> tuple[str, ...]:
    """The regions that have more misses of any kind than as linked."""
    return tuple(one.name for one in report.payers())


def _applied_payers(applied: Applied) -> tuple[str, ...]:
    """The regions that have more misses than as linked."""
    return tuple(one.name for one in applied.regions if one.pays)


_SHAPES: dict[type, Shape] = {
    Applied: Shape(adds={"payers": _applied_payers}),
    AppliedRegion: Shape(adds={"pays": "pays", "as_predicted": "is_as_predicted"}),
    PlaceReport: Shape(adds={"payers": _payers}, omits=("caches",)),
    PlacedMisses: Shape(adds={"pays": "pays"}),
}

KIND = Kind(
    report=PlaceReport,
    json="kdelta.place/2",
    document=lambda s: document(s, s.one(PlaceReport)),
    question=_question,
    shapes=_SHAPES,
)
