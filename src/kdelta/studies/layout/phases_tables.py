# SPDX-License-Identifier: GPL-2.0-or-later
"""The phases of regions over layouts: their misses, and the model's cycles and rates."""

from collections.abc import Iterator
from fractions import Fraction

from kdelta.cpus.model import LINES
from kdelta.infer.cycles.ensembles import Interval
from kdelta.report import cells, figures
from kdelta.report.document import Cell, Column, Section, Table
from kdelta.report.model import ReportedCPU
from kdelta.spec.phase import REST
from kdelta.studies.layout.model import LayoutPhase, LayoutRegion, LayoutReport

_MEGA = 10**6


def phases_section(report: LayoutReport) -> Iterator[Section]:
    """Two tables of the regions that have phases; nothing where none has."""
    held = [one for one in report.regions if one.phases]
    if held:
        cycles = _cycles_table(held, report.cpu)
        yield Section("phases", "Phases", (_misses_table(held), cycles))


def _misses_table(regions: list[LayoutRegion]) -> Table:
    columns = (
        Column("phase", "name"),
        Column("calls", "number", "an iteration"),
        Column("insns", "number"),
        *(Column(title, "number") for title in ("least", "median", "most", "as linked", "p")),
    )
    caption = (
        "L1I misses of phases over the layouts, an iteration, of all tasks and interrupts; p: per "
        "cent of the layouts with less than the kernel as linked"
    )
    rows = tuple(_misses(region.name, one) for region in regions for one in region.phases)
    return Table("phases-table", caption, columns, rows)


def _misses(region: str, phase: LayoutPhase) -> tuple[Cell, ...]:
    found = phase.misses[LINES]
    return (
        Cell(f"{region}: {phase.name}"),
        cells.number(phase.calls) if phase.name != REST else Cell("-"),
        *map(cells.number, (phase.insns, found.least, found.median, found.most, found.shipped)),
        Cell(f"{found.percentile:.0f}", found.percentile),
    )


def _cycles_table(regions: list[LayoutRegion], cpu: ReportedCPU) -> Table:
    mhz = cpu.clock_mhz
    rate = "" if mhz is None else f"; a second: at {mhz:g} MHz, of a CPU that does nothing else"
    columns = (
        Column("phase", "name"),
        Column("cycles a call", "number", "from the lowest prices to the highest"),
        Column("at stake", "number", "from the cheapest to the costliest layout, of the median"),
        *(() if mhz is None else (Column("calls a second", "number"),)),
    )
    rows = tuple(
        _cycles(region.name, one, cpu)
        for region in regions
        for one in region.phases
        if one.name != REST and one.calls
    )
    caption = f"Model cycles of phases on {cpu.name} as linked{rate}"
    return Table("phase-cycles-table", caption, columns, rows)


def _cycles(region: str, phase: LayoutPhase, cpu: ReportedCPU) -> tuple[Cell, ...]:
    low, high = (end / phase.calls for end in (phase.cycles.shipped.low, phase.cycles.shipped.high))
    shown = (
        Cell(f"{region}: {phase.name}"),
        cells.ends(Interval(low, high)),
        Cell(f"{100 * phase.cycles.swing:.1f} %", phase.cycles.swing),
    )
    if cpu.clock_mhz is None:
        return shown
    if low <= 0:
        return (*shown, cells.NOTHING)
    slow, fast = (cpu.clock_mhz * _MEGA / end for end in (high, low))
    texts = [figures.fitted(Fraction(round(end))) for end in (slow, fast)]
    return (*shown, Cell(" to ".join(dict.fromkeys(texts)), slow))
