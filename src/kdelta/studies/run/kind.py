# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta run` as a kind of study: its report, question and JSON."""

from collections.abc import Callable
from fractions import Fraction

from kdelta.counts.model import (
    CONTEXTS,
    Context,
    Cost,
    FunctionCost,
    Iterations,
    Packets,
    RegionCounts,
    merged_regions,
)
from kdelta.report.document import Document
from kdelta.report.json import Shape
from kdelta.report.kind import Kind
from kdelta.report.names import kernel_name
from kdelta.report.stored import Stored
from kdelta.store.model import Study
from kdelta.studies.run.document import RunDetail, document
from kdelta.studies.run.model import RunReport


def _question(first: RunReport, *_: RunReport) -> str:
    run = first.run.run
    return (
        f"What does {run.workload} execute on {kernel_name(run.kernel_spec, run.kernel_release)}?"
    )


def _merged(report: RunReport) -> tuple[RegionCounts, ...]:
    """The regions, those of one name as one."""
    return tuple(merged_regions(report.counts).values()) if report.counts else ()


def _run_warnings(report: RunReport) -> tuple[str, ...]:
    counted = report.counts.warnings if report.counts else ()
    return (*counted, *report.warnings)


def _cost_of(context: Context) -> Callable[[RegionCounts], Cost]:
    def cost(region: RegionCounts) -> Cost:
        return region.cost(context)

    return cost


def _region_packets(region: RegionCounts) -> Packets | None:
    """Null for a region that is not about any."""
    return region.packets if region.packets and region.packets.count else None


def _packet_insns(_packets: Packets, region: RegionCounts) -> Fraction | None:
    """The instructions of all tasks and interrupts a packet."""
    return region.packet_insns()


_SHAPES: dict[type, Shape] = {
    FunctionCost: Shape(sparse=("calls", "caller")),
    Iterations: Shape(adds={"by_interrupts": "interrupts", "by_other": "other"}),
    Packets: Shape(adds={"insns_each": _packet_insns}),
    RegionCounts: Shape(
        adds={
            "iterations": "iteration_count",
            "mean_insns": RegionCounts.mean_own_insns,
            "median_insns": RegionCounts.median_own_insns,
            "clock_ns": "clock_ticks",
            "idle_ns": RegionCounts.idle_ticks,
            **{context: _cost_of(context) for context in CONTEXTS},
            "packets": _region_packets,
        },
        omits=("iterations_lost",),
        flat=("iterations",),
    ),
    RunReport: Shape(adds={"regions": _merged, "warnings": _run_warnings}, omits=("counts",)),
    Study: Shape(adds={"kdelta": "version"}, omits=("report_blob",)),
}
"""Of runs and studies as they are kept."""


def _printed(stored: Stored) -> Document:
    """With as many functions as were asked for."""
    asked = RunDetail(functions=stored.shown.get("functions", 20))
    return document(stored, stored.of(RunReport), asked)


KIND = Kind(
    report=RunReport,
    json="kdelta.run/1",
    document=lambda s: document(s, s.of(RunReport)),
    printed=_printed,
    question=_question,
    shapes=_SHAPES,
)
