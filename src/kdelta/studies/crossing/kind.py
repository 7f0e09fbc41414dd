# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta crossing` as a kind of study: its report, question and JSON."""

from fractions import Fraction

from kdelta.infer.cycles.crossing import Share, VariantCost
from kdelta.infer.effects.estimate import ZERO
from kdelta.report.json import Shape
from kdelta.report.kind import Kind
from kdelta.report.shortened import explained
from kdelta.studies.crossing.document import document
from kdelta.studies.crossing.model import CrossingReport, CrossingVariant


def _question(one: CrossingReport) -> str:
    return f"What does crossing into the kernel cost {one.workload} on {one.arms[0].side.spec}?"


def _cpu_name(report: CrossingReport) -> str | None:
    """Whose prices model cycles have."""
    return report.cpu.name if report.cpu else None


def _paths(report: CrossingReport) -> tuple[str, ...]:
    """What kernels did otherwise than on the CPU."""
    return tuple(one.text for one in report.unlike)


def _string_bytes(variant: VariantCost) -> Fraction:
    return variant.amounts.get("string_bytes", ZERO)


_SHAPES: dict[type, Shape] = {
    VariantCost: Shape(
        adds={"system": "kernel", "string_bytes": _string_bytes, "specials": "specials"},
        omits=("amounts",),
    ),
    CrossingVariant: Shape(adds={"vulnerabilities": "chose"}),
    CrossingReport: Shape(adds={"cpu": _cpu_name, "unlike": _paths}, flat=("found",)),
    Share: Shape(adds={"system": "kernel"}),
}


KIND = Kind(
    report=CrossingReport,
    json="kdelta.crossing/1",
    document=document,
    printed=explained(document, "operations", "rows", 60),
    question=_question,
    shapes=_SHAPES,
)
