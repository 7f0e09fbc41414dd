# SPDX-License-Identifier: GPL-2.0-or-later
"""The document of a layout study: how much depends on where functions are, and which collide."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from kdelta.cpus.misses import PLURALS
from kdelta.cpus.model import LINES
from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.cycles.sensitivity import ALIKE, Distribution, Replaced
from kdelta.measures.cycles.cut import cut_note
from kdelta.measures.cycles.words import cpu_line, data_kind
from kdelta.report import cells, figures, words
from kdelta.report import parts as common
from kdelta.report.document import (
    Answer,
    Block,
    Case,
    Cell,
    Chart,
    Charts,
    Chip,
    Column,
    Document,
    Fold,
    Outcome,
    Prose,
    Section,
    Spread,
    Suite,
    Table,
)
from kdelta.report.model import ReportedCPU
from kdelta.report.names import kernel_name
from kdelta.report.stored import Stored
from kdelta.spec.phase import REST
from kdelta.studies.layout.model import REPLACEMENTS, LayoutPhase, LayoutRegion, LayoutReport

_MATTERS = 0.01
_NAMED = 3
_SETS = 6

_COLUMNS = tuple(
    Column(title, "number")
    for title in ("least", "25 %", "median", "75 %", "most", "as linked", "percentile")
)

_MEGA = 10**6


def layout_document(stored: Stored, report: LayoutReport) -> Document:
    """Return the document of one kernel's layouts."""
    sides = (("kernel", report.kernel),)
    name = kernel_name(report.kernel.spec, report.kernel.release)
    return Document(
        title=f"{report.workload}: placement of {name}",
        made=common.made_of(stored),
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
            *common.unlike_section(report.cpu.name, report.mismatches),
        ),
        environment=common.environment(stored, report.machine, sides),
        suites=(
            common.kernels_suite(sides),
            Suite(f"placement on {report.cpu.name}", tuple(map(_case, report.regions))),
        ),
        failures=common.failures(sides),
        notes=(*report.notes, *map(cut_note, report.cut)),
        warnings=report.warnings,
    )


def _case(region: LayoutRegion) -> Case:
    """No layout is a regression: no case of it is slower."""
    lines = []
    for kind, one in region.misses.items():
        least, most, median, shipped = (
            figures.fitted(Fraction(value))
            for value in (one.least, one.most, one.median, one.as_linked)
        )
        lines.append(
            f"{kind} misses {least} to {most}, median {median}, as linked {shipped} "
            f"(p{one.percentile:.0f})"
        )
    return Case(
        region.name, Outcome.OK, f"{_swing(region)} of its model cycles at stake", tuple(lines)
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
        text = f"Of {total}, the layout changes none by more than 1 % of its model cycles."
    else:
        named = [f"{one.name} ({_swing(one)})" for one in moved[:_NAMED]]
        text = (
            f"Of {total}, {len(moved)} depend by more than 1 % of their model cycles on where the "
            f"linker put functions, if no miss is hidden. Most: {words.listed(named)}."
        )
    bad = [one for one in moved if one.cycles.percentile >= 90]
    if bad:
        names = words.listed([one.name for one in bad[:_NAMED]])
        text += f" The kernel as it is lies among the worst tenth of layouts in {len(bad)}: {names}"
        text += "." if len(bad) <= _NAMED else " first of all."
    chips = (
        Chip("depend on it", len(moved), "placement"),
        Chip("do not", len(ranked) - len(moved)),
    )
    return Answer((text,), chips, tone="placement" if moved else "same")


def _swing(region: LayoutRegion) -> str:
    return f"{100 * region.cycles.swing:.1f} %"


def _sections(report: LayoutReport) -> Iterator[Section]:
    if not report.regions:
        return
    yield Section("operations", "Operations", (_table(report),))
    drawn = [chart for region in _ranked(report) for chart in _charts(region)]
    if drawn:
        yield Section("layouts", "Random layouts of the same code", (Charts(tuple(drawn)),))
    for kind in dict.fromkeys(kind for one in report.regions for kind in one.misses):
        yield _kind_section(kind, report)
    yield from _data(report)
    yield from replacement_section(report)
    yield from phases_section(report)
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
        Column("as linked", "number", "model cycles an iteration"),
        Column("median", "number", "model cycles an iteration"),
    )
    rows = tuple(
        (
            Cell(one.name),
            Cell(_swing(one), one.cycles.swing),
            Cell(f"{one.cycles.percentile:.0f}", one.cycles.percentile),
            *(
                cells.ends(interval)
                for interval in (one.cycles.executed, one.cycles.as_linked, one.cycles.median)
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
        title = PLURALS.get(kind, kind)
        yield Chart(
            "spreads",
            (Spread("layouts", region.draws[kind], found.as_linked, "base"),),
            f"{title} an iteration",
            f"{region.name}: {title}; the line is the kernel as it is",
            f"{region.name}, {title} an iteration: {_said(found)}",
        )


def _said(found: Distribution) -> str:
    least, median, most, shipped = (
        figures.fitted(Fraction(value))
        for value in (found.least, found.median, found.most, found.as_linked)
    )
    return (
        f"{least} to {most}, median {median}, as linked {shipped}, which is above "
        f"{found.percentile:.0f} % of the layouts"
    )


def _cells(found: Distribution) -> tuple[Cell, ...]:
    quarters = (found.least, found.quarter, found.median, found.three_quarters, found.most)
    return (*map(cells.number, (*quarters, found.as_linked)), _percentile(found))


def _percentile(found: Distribution) -> Cell:
    return Cell(f"{found.percentile:.0f}", found.percentile)


def _kind_section(kind: str, report: LayoutReport) -> Section:
    title = PLURALS.get(kind, f"{kind} misses")
    held = [(one.name, one.misses[kind]) for one in report.regions if kind in one.misses]
    missing = [(name, found) for name, found in held if found.most or found.as_linked]
    quiet = [name for name, found in held if not (found.most or found.as_linked)]
    blocks: list[Block] = []
    if missing:
        rows = tuple((Cell(name), *_cells(found)) for name, found in missing)
        columns = (Column("operation", "name"), *_COLUMNS)
        blocks.append(Table(f"misses-{kind}", f"{title} an iteration", columns, rows))
    if quiet:
        every = "In no layout of any operation." if not missing else ""
        blocks.append(Prose(every or f"None in any layout: {', '.join(quiet)}."))
    return Section(f"kind-{kind}", title, tuple(blocks))


def _data(report: LayoutReport) -> Iterator[Section]:
    """What accesses to data miss: the same in all layouts, so that a row has one figure a kind."""
    kinds = dict.fromkeys(kind for region in report.regions for kind in region.data)
    held = [kind for kind in kinds if any(one.data.get(kind) for one in report.regions)]
    if not kinds:
        return
    columns = (Column("operation", "name"), *(Column(data_kind(k), "number") for k in held))
    rows = tuple(
        (Cell(one.name), *(cells.number(one.data.get(kind, 0.0)) for kind in held))
        for one in report.regions
    )
    caption = "Misses an iteration, the same in all layouts of code; st.: stores"
    left = [data_kind(kind) for kind in kinds if kind not in held]
    table = (Table("data-table", caption, columns, rows),) if held else ()
    none = (Prose(f"None in any operation: {', '.join(left)}."),) if left else ()
    yield Section("data", "Misses of data", (*table, *none))


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
        Column("sets"),
    )
    rows = tuple(
        (
            Cell(_together(one.functions)),
            cells.number(one.misses),
            cells.ends(one.cycles),
            Cell(_sets(one.sets), len(one.sets)),
        )
        for one in region.collisions
    )
    rest = region.pairs - len(region.collisions)
    more = cells.number(max(0.0, region.colliding - sum(one.misses for one in region.collisions)))
    foot = ((Cell(f"{rest} more pairs"), more, cells.NOTHING, cells.NOTHING),) if rest else ()
    caption = (
        "Functions that put out each other's lines as linked: of "
        f"{figures.fitted(Fraction(region.colliding))} misses an iteration, of any context"
    )
    yield Table(f"collisions-{region.name}", caption, columns, rows, foot=foot)


def _sets(sets: Sequence[int]) -> str:
    """The sets, runs of them as one."""
    runs: list[list[int]] = []
    for number in sets:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    texts = [str(low) if low == high else f"{low}-{high}" for low, high in runs]
    more = f" and {len(texts) - _SETS} more" if len(texts) > _SETS else ""
    return ", ".join(texts[:_SETS]) + more


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
            caption = f"{PLURALS.get(kind, kind)} with functions aligned otherwise"
            yield Table(f"aligned-{kind}-{region.name}", caption, columns, rows)


def replacement_section(report: LayoutReport) -> Iterator[Section]:
    """A table for each kind of misses: of each region the median layout and the one as linked,
    under either policy. Regions without any misses are left out.
    """
    kinds = dict.fromkeys(kind for one in report.regions for kind in one.replacement)
    tables = tuple(table for kind in kinds for table in _replaced_table(kind, report))
    if tables:
        yield Section("replacement", "Replacement policy", tables)


def _replaced_table(kind: str, report: LayoutReport) -> Iterator[Table]:
    held = [(one.name, one.replacement[kind]) for one in report.regions if kind in one.replacement]
    held = [(name, one) for name, one in held if one.own.most or one.lru.most]
    if not held:
        return
    how = REPLACEMENTS.get(held[0][1].policy, held[0][1].policy)
    caption = (
        f"{PLURALS.get(kind, kind)}: this cache replaces {how}; next to it, if the least recently "
        "used left (LRU)"
    )
    rho = f"rank correlation of the layouts under both; below {ALIKE:g} (*) it depends on the "
    columns = (
        Column("operation", "name"),
        Column("median", "number"),
        Column("as linked", "number"),
        Column("p", "number", "per cent of the layouts with less than the one as linked"),
        *(Column(title, "number") for title in ("LRU median", "LRU as linked", "LRU p")),
        Column("rho", "number", f"{rho}policy which layouts are good"),
    )
    yield Table(f"replacement-{kind}", caption, columns, tuple(_row(*row) for row in held))


def _row(name: str, found: Replaced) -> tuple[Cell, ...]:
    shown = [
        cell
        for one in (found.own, found.lru)
        for cell in (
            cells.number(one.median),
            cells.number(one.as_linked),
            _percentile(one),
        )
    ]
    rho = "-" if found.correlation is None else f"{found.correlation:.2f}"
    return (Cell(name), *shown, Cell(f"{rho}{'*' if found.hangs else ''}", found.correlation or 0))


def phases_section(report: LayoutReport) -> Iterator[Section]:
    """Two tables of the regions that have phases; nothing where none has."""
    held = [one for one in report.regions if one.phases]
    if held:
        yield Section("phases", "Phases", (_misses_table(held), _cycles_table(held, report.cpu)))


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
        *map(cells.number, (phase.insns, found.least, found.median, found.most, found.as_linked)),
        _percentile(found),
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
    low, high = (
        end / phase.calls for end in (phase.cycles.as_linked.low, phase.cycles.as_linked.high)
    )
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
