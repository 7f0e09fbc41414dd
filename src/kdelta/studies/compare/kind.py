# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta compare` as a kind of study: its report, question, JSON and text."""

from collections.abc import Sequence
from fractions import Fraction

import msgspec

from kdelta.counts.model import is_kernel
from kdelta.infer.effects.effects import BackgroundEffect, OperationEffect
from kdelta.infer.effects.estimate import ZERO
from kdelta.infer.effects.functions import FunctionEffect
from kdelta.infer.effects.packets import PacketEffect, PhaseCost
from kdelta.report import words
from kdelta.report.document import Document
from kdelta.report.json import Shape
from kdelta.report.kind import ALL, Kind
from kdelta.report.packets import NOT_IN_IT, ModelRate, model_rates
from kdelta.report.shortened import shortened
from kdelta.report.stored import Stored
from kdelta.studies.compare.answer import least_of, pairs_of
from kdelta.studies.compare.document import document
from kdelta.studies.compare.first_screen import first_screen
from kdelta.studies.compare.model import (
    Compared,
    CompareReport,
    ComparisonReport,
    comparison,
    report_groups,
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


class Unchanged(msgspec.Struct, frozen=True):
    """The functions that cost the same on both sides, summed: with them the functions add up."""

    functions: int
    insns: Fraction


def _changed(row: OperationEffect | BackgroundEffect) -> tuple[FunctionEffect, ...]:
    """The functions whose cost changed or was spread."""
    return tuple(one for one in row.functions if one.cost.moved)


def _unchanged(row: OperationEffect | BackgroundEffect) -> Unchanged:
    same = [one.cost.base.value for one in row.functions if not one.cost.moved]
    return Unchanged(len(same), sum(same, ZERO))


def _is_kernel(function: FunctionEffect) -> bool:
    """Whether it is the kernel's, or a module's."""
    return is_kernel(function.origin)


def _rates(
    packets: PacketEffect, compared: Compared, report: CompareReport
) -> dict[str, ModelRate] | None:
    """What a model makes of it, by side; null where model cycles are not known."""
    effects = compared.cycles.effects if compared.cycles else ()
    effect = next((one for one in effects if one.region == packets.region), None)
    return model_rates(packets, effect, report.cpu) if effect and report.cpu else None


def _phases(packets: PacketEffect, compared: Compared) -> dict[str, tuple[PhaseCost, ...]]:
    """What its phases cost a packet, by side, where the workload has any and was traced."""
    return {
        who: found[packets.region]
        for who, found in compared.phases.items()
        if packets.region in found
    }


def _not_in_it(_packets: PacketEffect) -> str:
    """What is in none of these figures."""
    return NOT_IN_IT


_SHAPES: dict[type, Shape] = {
    BackgroundEffect: Shape(
        adds={"insns_per_second": "rate", "functions": _changed, "unchanged": _unchanged}
    ),
    CompareReport: Shape(
        adds={"groups": report_groups}, omits=("workload", "bytes_worked_on"), later=("groups",)
    ),
    Compared: Shape(
        adds={"kernel": "side", "more_runs": "more"},
        omits=("phases", "config"),
        flat=("effects",),
        sparse=("unlike", "gains"),
    ),
    FunctionEffect: Shape(adds={"kernel": _is_kernel, "insns": "cost"}, sparse=("called_by",)),
    OperationEffect: Shape(adds={"functions": _changed, "unchanged": _unchanged}),
    PacketEffect: Shape(adds={"model": _rates, "phases": _phases, "not_in_it": _not_in_it}),
}


def _printed(stored: Stored) -> Document:
    """The first screen, or all with as many functions of as many operations as were asked for."""
    reports = stored.of(CompareReport)
    found = document(stored, reports, stored.shown.get("functions", 10))
    if ALL not in stored.shown:
        return first_screen(found, pairs_of(reports, least_of(stored)))
    return shortened(found, "functions", "folds", stored.shown.get("explain", 5))


KIND = Kind(
    report=CompareReport,
    json="kdelta.compare/2",
    document=lambda s: document(s, s.of(CompareReport)),
    printed=_printed,
    question=_question,
    shapes=_SHAPES,
    whole=(ComparisonReport, comparison),
)
