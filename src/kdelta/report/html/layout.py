# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of a layout study: how much hangs on where functions are, and which collide."""

from collections.abc import Iterator, Sequence

from kdelta.infer.sensitivity import Distribution
from kdelta.report.cut import cut_note
from kdelta.report.cycles import cpu_line
from kdelta.report.html import charts, common, words
from kdelta.report.html.model import (
    Answer,
    Block,
    Cell,
    Chart,
    Charts,
    Chip,
    Column,
    Document,
    Fold,
    Prose,
    Section,
    Table,
)
from kdelta.report.layout_model import LayoutRegion, LayoutReport
from kdelta.report.layout_text import KINDS, layout_text
from kdelta.report.stored import Stored

_MATTERS = 0.01
_NAMED = 3
_OPEN = 3


def document(stored: Stored, report: LayoutReport) -> Document:
    """The page of one kernel's layouts."""
    sides = (("kernel", report.kernel),)
    shown = stored.shown
    text = layout_text(report, shown.get("explain", 5), shown.get("collisions", 10))
    return Document(
        title="kdelta layout",
        question=stored.question,
        answers=(_answer(report),),
        facts=(
            ("kernel", common.kernel_fact(report.kernel)),
            ("workload", report.workload),
            ("CPU", cpu_line(report.cpu)),
            ("caches", "; ".join(report.caches)),
            ("layouts", _layouts(report)),
        ),
        sections=(
            *_sections(report),
            *common.unlike_section(report.cpu.name, report.unlike),
            *common.notes(
                [
                    ("Of the operations", (*report.notes, *map(cut_note, report.cut))),
                    ("Warnings", report.warnings),
                ]
            ),
            common.environment(stored, report.machine, sides),
            common.as_text(text),
        ),
        warnings=tuple(common.failures(sides)),
    )


def _layouts(report: LayoutReport) -> str:
    text = report.orders
    if report.executed:
        text += f"; of {report.executed} executed functions {report.movable} move"
    return text + (f", aligned to {report.alignment} as linked" if report.alignment else "")


def _ranked(report: LayoutReport) -> list[LayoutRegion]:
    return sorted(report.regions, key=lambda one: -one.cycles.swing)


def _answer(report: LayoutReport) -> Answer:
    if not report.regions:
        text = "Nothing is known: no operation ran, or none has a trace."
        return Answer((text,), tone="unresolved")
    ranked = _ranked(report)
    moved = [one for one in ranked if one.cycles.swing > _MATTERS]
    total = words.counted(len(ranked), "operation")
    if not moved:
        text = f"Of {total}, none hangs by more than 1 % of its model cycles on its layout."
    else:
        named = [f"{one.name} ({_swing(one)})" for one in moved[:_NAMED]]
        text = (
            f"Of {total}, {len(moved)} hang by more than 1 % of their model cycles on where the "
            f"linker put functions, if no miss is hidden. Most: {words.listed(named)}."
        )
    bad = [one for one in moved if one.cycles.percentile >= 90]
    if bad:
        names = words.listed([one.name for one in bad[:_NAMED]])
        text += f" The kernel as it is lies among the worst tenth of layouts in {len(bad)}: {names}"
        text += "." if len(bad) <= _NAMED else " first of all."
    chips = (
        Chip("hang on it", len(moved), "placement"),
        Chip("do not", len(ranked) - len(moved)),
    )
    return Answer((text,), chips, tone="placement" if moved else "same")


def _swing(region: LayoutRegion) -> str:
    return f"{100 * region.cycles.swing:.1f}{words.THIN}%"


def _sections(report: LayoutReport) -> Iterator[Section]:
    if not report.regions:
        return
    yield Section("operations", "Operations", (_table(report),))
    drawn = [chart for region in _ranked(report) for chart in _charts(region)]
    if drawn:
        lead = Prose(
            "Misses over random layouts of the same code; the line is the kernel as it is."
        )
        yield Section("layouts", "Layouts", (lead, Charts(tuple(drawn))))
    for kind in dict.fromkeys(kind for one in report.regions for kind in one.misses):
        yield _kind_section(kind, report)
    apart = [fold for region in _ranked(report) for fold in _apart(region, report)]
    if apart:
        yield Section("collisions", "Collisions and alignments", tuple(apart))


def _table(report: LayoutReport) -> Table:
    unmissed, held = report.unmissed
    columns = (
        Column("operation", "name"),
        Column("at stake", "number", "from the cheapest to the costliest layout, of the median"),
        Column(
            "percentile", "number", "how many per cent of the layouts cost less than the kernel"
        ),
        Column(unmissed, "number", "; ".join(filter(None, ("model cycles an iteration", held)))),
        Column("shipped", "number", "model cycles an iteration"),
        Column("median", "number", "model cycles an iteration"),
    )
    rows = tuple(
        (
            Cell(one.name),
            Cell(_swing(one), one.cycles.swing),
            Cell(f"{one.cycles.percentile:.0f}", one.cycles.percentile),
            *(
                Cell(words.ends(interval.low, interval.high), interval.high)
                for interval in (one.cycles.executed, one.cycles.shipped, one.cycles.median)
            ),
        )
        for one in _ranked(report)
    )
    caption = f"Model cycles on {report.cpu.name}, from the lowest prices to the highest"
    return Table("ops", caption, columns, rows, filtered=True)


def _charts(region: LayoutRegion) -> Iterator[Chart]:
    for kind, found in region.misses.items():
        if not found.varies:
            continue
        title = KINDS.get(kind, kind)
        spread = charts.Spread("layouts", region.draws[kind], found.shipped, "base")
        yield Chart(
            charts.spreads_svg([spread], f"{title} an iteration"),
            f"{region.name}: {title}",
            f"{region.name}, {title} an iteration: {_said(found)}",
        )


def _said(found: Distribution) -> str:
    least, median, most, shipped = (
        words.number(round(value, 2))
        for value in (found.least, found.median, found.most, found.shipped)
    )
    return (
        f"{least} to {most}, median {median}, shipped {shipped}, which is above "
        f"{found.percentile:.0f} % of the layouts"
    )


_COLUMNS = tuple(
    Column(title, "number")
    for title in ("least", "25 %", "median", "75 %", "most", "shipped", "percentile")
)


def _cells(found: Distribution) -> tuple[Cell, ...]:
    values = (
        found.least,
        found.quarter,
        found.median,
        found.three_quarters,
        found.most,
        found.shipped,
    )
    return (
        *(Cell(words.number(round(value, 2)), value) for value in values),
        Cell(f"{found.percentile:.0f}", found.percentile),
    )


def _kind_section(kind: str, report: LayoutReport) -> Section:
    title = KINDS.get(kind, f"{kind} misses")
    held = [(one.name, one.misses[kind]) for one in report.regions if kind in one.misses]
    missing = [(name, found) for name, found in held if found.most or found.shipped]
    quiet = [name for name, found in held if not (found.most or found.shipped)]
    blocks: list[Block] = []
    if missing:
        rows = tuple((Cell(name), *_cells(found)) for name, found in missing)
        columns = (Column("operation", "name"), *_COLUMNS)
        blocks.append(Table(f"misses-{kind}", f"{title} an iteration", columns, rows))
    if quiet:
        every = "In no layout of any operation." if not missing else ""
        blocks.append(Prose(every or f"None in any layout: {', '.join(quiet)}."))
    return Section(f"kind-{kind}", title, tuple(blocks))


def _apart(region: LayoutRegion, report: LayoutReport) -> Iterator[Fold]:
    blocks = [*_collisions(region, report), *_aligned(region)]
    if blocks and region.cycles.swing > 0:
        yield Fold(f"{region.name}: {_swing(region)} at stake", tuple(blocks))


def _collisions(region: LayoutRegion, report: LayoutReport) -> Iterator[Block]:
    if not region.collisions:
        return
    columns = (
        Column("functions", "name"),
        Column("misses", "number"),
        Column(f"model cycles on {report.cpu.name}", "number"),
        Column("sets", "number"),
    )
    rows = tuple(
        (
            Cell(_together(one.functions)),
            Cell(words.number(round(one.misses, 2)), one.misses),
            Cell(words.ends(one.cycles.low, one.cycles.high), one.cycles.high),
            Cell(str(len(one.sets)), len(one.sets)),
        )
        for one in region.collisions
    )
    rest = region.pairs - len(region.collisions)
    left = region.colliding - sum(one.misses for one in region.collisions)
    more = Cell(words.number(round(max(0.0, left), 2)))
    foot = ((Cell(f"{rest} more pairs"), more, Cell(""), Cell("")),) if rest else ()
    caption = (
        "Functions that put out each other's lines as shipped: misses an iteration of any context"
    )
    yield Table(f"collisions-{region.name}", caption, columns, rows, foot)


def _together(functions: Sequence[str]) -> str:
    first, second = functions
    return f"{first} with itself" if first == second else f"{first} and {second}"


def _aligned(region: LayoutRegion) -> Iterator[Block]:
    for kind in region.misses:
        rows = tuple(
            (Cell(f"{one.bytes} bytes", one.bytes), *_cells(one.drawn[kind]))
            for one in region.aligned
            if kind in one.drawn
        )
        if any(one.drawn[kind].varies for one in region.aligned if kind in one.drawn):
            columns = (Column("aligned to", "name"), *_COLUMNS)
            caption = f"{KINDS.get(kind, kind)} with functions aligned otherwise"
            yield Table(f"aligned-{kind}-{region.name}", caption, columns, rows)
