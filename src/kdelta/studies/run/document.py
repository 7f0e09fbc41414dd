# SPDX-License-Identifier: GPL-2.0-or-later
"""The document of one run: what its regions cost, and which functions did it."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction

import msgspec

from kdelta.counts.model import RegionCounts, merged_regions
from kdelta.infer.effects.functions import by_function
from kdelta.report import cells, figures, words
from kdelta.report import parts as common
from kdelta.report.document import (
    Answer,
    Block,
    Case,
    Cell,
    Column,
    Document,
    Fold,
    Outcome,
    Prose,
    Section,
    Suite,
    Table,
    Verbatim,
)
from kdelta.report.lines import function_name
from kdelta.report.model import ReportedRun
from kdelta.report.names import kernel_name
from kdelta.report.packets import NOT_IN_IT
from kdelta.report.stored import Stored
from kdelta.spec.errors import UserError
from kdelta.studies.run.model import RunReport

_MOST = 40
_FEW = 3
"""So many regions are explained unasked; a table of dozens names those to ask for."""


class RunDetail(msgspec.Struct, frozen=True):
    """How much of a run is printed: the regions whose functions are named (none: all, if there are
    few), how many of each, and how many of the last lines of its output. is_brief: without special
    instructions, what others did meanwhile, files, and the environment.
    """

    regions: tuple[str, ...] = ()
    functions: int = 20
    lines: int = 20
    is_brief: bool = False


BRIEF = RunDetail(functions=10, lines=10, is_brief=True)


def run_document(
    stored: Stored, reports: Sequence[RunReport], asked: RunDetail | None = None
) -> Document:
    """Return the document of a run, or of the perturbed runs of a command. asked: None is all.
    Raises UserError for a region that the run does not have.
    """
    first = reports[0]
    run = first.run.run
    side = common.run_side(*(report.run for report in reports))
    chosen = next((report for report in reports if report.counts), first)
    counts = chosen.counts
    failure = f": {run.detail}" if run.detail else ""
    outcome = Outcome.OK if first.run.ok else Outcome.FAILED
    suites = [Suite("run", (Case(run.workload, outcome, f"{run.word}{failure}"),))]
    if counts:
        suites.append(Suite("regions", tuple(map(_case, merged_regions(counts).values()))))
    name = f"{run.workload} on {kernel_name(run.kernel_spec, run.kernel_release)}"
    found = Document(
        title=f"{name}: {run.word}",
        made=common.made_of(stored),
        answers=(_answer(chosen, name),),
        facts=(
            ("kernel", common.kernel_fact(side)),
            ("workload", f"{run.workload}, perturbation {chosen.run.run.perturbation}"),
            ("run", _run_fact(chosen.run)),
            *((("command line", run.command),) if run.command else ()),
            ("counted", words.COUNTED),
        ),
        sections=tuple(_sections(chosen, asked)),
        environment=common.environment(stored, run.machine, (("kernel", side),)),
        suites=tuple(suites),
        failures=common.failures((("kernel", side),)),
        warnings=(*(counts.warnings if counts else ()), *first.warnings),
    )
    if asked is None or not asked.is_brief:
        return found
    counted = "Instructions, not time. " if counts else ""
    more = Prose(f"{counted}All of it: kdelta show {run.id}")
    environment = (Section("more", "", (more,)),)
    return msgspec.structs.replace(found, facts=(), environment=environment)


def _run_fact(reported: ReportedRun) -> str:
    run = reported.run
    took = "" if run.seconds is None else f", took {run.seconds:.1f} s"
    stored = ", answered from the store (--rerun reruns it)" if reported.from_store else ""
    return f"{run.id}, {run.started_text} UTC{took}{stored}"


def _case(region: RegionCounts) -> Case:
    whole, kernel, user = (cell.text for cell in _own(region))
    text = f"{whole} instructions an iteration: {kernel} of the kernel, {user} of the user"
    return Case(region.name, Outcome.OK, f"{region.iteration_count} iterations", (text,))


def _own(region: RegionCounts) -> tuple[Cell, Cell, Cell]:
    """Own instructions an iteration, and the kernel's and the user's part, which add up to it."""
    kernel = Fraction(region.cost("own", kernel=True).insns, region.iteration_count)
    unit = figures.unit_of(region.mean_own_insns())
    whole, part = (figures.scaled(one, unit) for one in (region.mean_own_insns(), kernel))
    return cells.rounded(whole), cells.rounded(part), cells.rounded(whole - part)


def _answer(report: RunReport, name: str) -> Answer:
    """What was executed in sum, and how much of it in the kernel; name: of the run."""
    if report.counts is None:
        run = report.run.run
        detail = f": {run.detail}" if run.detail else ""
        return Answer((f"No counts of {name}: {run.word}{detail}.",), tone="slower")
    regions = merged_regions(report.counts).values()
    if not regions:
        text = f"{name}: no region. The workload marked none, and did not run as one."
        return Answer((text,), tone="unresolved")
    total = sum(region.cost("own").insns for region in regions)
    kernel = sum(region.cost("own", kernel=True).insns for region in regions)
    part = f"{100 * kernel / total:.1f} %" if total else "none"
    if len(regions) == 1:
        (region,) = regions
        mean = cells.number(region.mean_own_insns()).text
        text = f"{mean} instructions an iteration of {region.name}"
    else:
        text = f"{total} instructions in {words.counted(len(regions), 'region')}"
    return Answer((f"{name}: {text}, {part} of them in the kernel.",), tone="same")


def _sections(report: RunReport, asked: RunDetail | None) -> Iterator[Section]:
    if report.counts is not None and (found := merged_regions(report.counts)):
        chosen = _chosen(found, asked)
        functions = _MOST if asked is None else asked.functions
        is_brief = asked is not None and asked.is_brief
        regions = [found[name] for name in (asked.regions if asked else ()) or found]
        specials = () if is_brief else _specials(regions)
        blocks = (_table(regions), *_packets(regions), *specials)
        yield Section("operations", "Regions", blocks)
        lead = Prose("What each function executed itself, by region; the rows add up to it.")
        more = Prose("-o NAME names the functions of a region (kdelta show).")
        folds: tuple[Block, ...] = tuple(_fold(found[name], functions) for name in chosen)
        if is_brief:
            folds = tuple(
                block
                for name in chosen
                for block in (Prose(_origins(found[name])), _own_table(found[name], functions))
            )
        elif folds:
            folds = (lead, *folds)
        yield Section("functions", "Functions", folds or (more,))
    printed = (("standard output", report.stdout), ("standard error", report.stderr))
    output = tuple(_output(title, text, asked) for title, text in printed if text.strip())
    if output:
        yield Section("output", "What it printed", output)
    if report.files and not (asked and asked.is_brief):
        yield Section("files", "Files of the host", (_files(report.files, asked),))


def _chosen(regions: Mapping[str, RegionCounts], asked: RunDetail | None) -> Sequence[str]:
    """The regions whose functions are named."""
    if asked is None:
        return list(regions)
    for name in asked.regions:
        if name not in regions:
            raise UserError(f"the run has no region {name!r}", f"it has: {', '.join(regions)}")
    return asked.regions or (list(regions) if len(regions) <= _FEW else [])


def _output(title: str, text: str, asked: RunDetail | None) -> Fold:
    lines = text.rstrip("\n").split("\n")
    if asked is None or len(lines) <= asked.lines:
        return Fold(title, (Verbatim(text),))
    shown = Verbatim("\n".join(lines[-asked.lines :]))
    return Fold(f"{title}, the last {asked.lines} of {len(lines)} lines", (shown,))


def _files(files: Sequence[str], asked: RunDetail | None) -> Fold:
    """Those with their contents; of the others only how many there are."""
    kinds = Counter(one.partition(" ")[0] for one in files)
    contents = [one.partition(" ")[2] for one in files if one.startswith("content ")]
    others = f"{kinds['folder']} folders, {kinds['link']} links, {kinds['size']} sizes of files"
    return _output(f"{len(contents)} files; besides: {others}", "\n".join(contents), asked)


def _packets(regions: Sequence[RegionCounts]) -> Iterator[Block]:
    """The packets of regions that are about any."""
    columns = (
        Column("forwarded", "name"),
        Column("packets", "number"),
        Column("insns each", "number", "of all tasks and interrupts, on whose time they are"),
        Column("bytes each", "number"),
    )
    rows = tuple(
        (
            Cell(region.name),
            cells.number(region.packets.count),
            cells.number(insns),
            cells.number(Fraction(region.packets.frame_bytes, region.packets.count)),
        )
        for region in regions
        for insns in (region.packet_insns(),)
        if region.packets is not None and insns is not None
    )
    if rows:
        yield Table("packets", "Packets", columns, rows)
        yield Prose(NOT_IN_IT)


def _specials(regions: Sequence[RegionCounts]) -> Iterator[Block]:
    """Special instructions and bytes of string operations of the tasks' own work."""
    rows = tuple(
        (Cell(region.name), Cell(kind), cells.number(Fraction(count, region.iteration_count)))
        for region in regions
        for own in (region.cost("own"),)
        for kind, count in {**own.specials, "string bytes": own.string_bytes}.items()
        if count
    )
    if rows:
        columns = (Column("region", "name"), Column("kind"), Column("an iteration", "number"))
        yield Table(
            "specials", "Special instructions, and bytes of string operations", columns, rows
        )


_MEANWHILE: Mapping[Column, Callable[[RegionCounts], Fraction | int | None]] = {
    Column("loads", "number"): lambda one: Fraction(one.cost("own").loads, one.iteration_count),
    Column("stores", "number"): lambda one: Fraction(one.cost("own").stores, one.iteration_count),
    Column("interrupts", "number", "instructions an iteration on its time"): lambda one: Fraction(
        one.cost("interrupts").insns, one.iteration_count
    ),
    Column("other tasks", "number", "instructions an iteration meanwhile"): lambda one: Fraction(
        one.cost("other").insns, one.iteration_count
    ),
    Column("left to others", "number", "instructions an iteration, done later"): lambda one: (
        one.left.mean_insns if one.left else None
    ),
    Column("idle", "number", "ns of the whole region"): lambda one: one.idle_ticks(),
}
"""Columns that a table has where any of its regions has figures in them."""


def _known(value: Fraction | int | None) -> Cell:
    return Cell("-") if value is None else cells.number(value)


def _table(regions: list[RegionCounts]) -> Table:
    more = {column: figure for column, figure in _MEANWHILE.items() if any(map(figure, regions))}
    columns = (
        Column("region", "name"),
        Column("iterations", "number"),
        Column("mean", "number", "own instructions an iteration"),
        Column("median", "number"),
        Column("kernel", "number", "of the mean, in the kernel"),
        Column("user", "number"),
        *more,
    )
    rows = tuple(
        (
            Cell(region.name, link=f"functions-of-{region.name}"),
            cells.number(region.iteration_count),
            mean,
            cells.number(region.median_own_insns()),
            *halves,
            *(_known(figure(region)) for figure in more.values()),
        )
        for region in regions
        for mean, *halves in (_own(region),)
    )
    return Table("ops", "What an iteration costs", columns, rows, filtered=True)


def _fold(region: RegionCounts, most: int) -> Fold:
    """The functions of the tasks' own work, which add up to the region's mean as printed."""
    return Fold(
        f"{region.name}: {cells.number(region.mean_own_insns()).text} instructions an iteration",
        (
            Prose(_origins(region)),
            _own_table(region, most),
            *_others(region, most),
            *_by_cpu(region),
        ),
        id=f"functions-of-{region.name}",
    )


def _origins(region: RegionCounts) -> str:
    """Where the executed code is from."""
    found: Counter[str] = Counter()
    for row in region.functions:
        if row.context == "own":
            found[row.origin] += row.cost.insns
    parts = [f"{origin} {100 * n / found.total():.1f} %" for origin, n in found.most_common() if n]
    return f"From {', '.join(parts)}." if parts else "Nothing of its own was executed."


def _own_table(region: RegionCounts, most: int) -> Table:
    own = by_function([[row for row in region.functions if row.context == "own"]])
    counted = {key: count for key, (count,) in own.items() if count}
    ranked = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    named, rest = ranked[:most], ranked[most:]
    counts = [count for _, count in named] + ([sum(n for _, n in rest)] if rest else [])
    names = [function_name(name, origin) for (origin, name), _ in named]
    names += [words.counted(len(rest), "other function")] if rest else []
    mean, whole = region.mean_own_insns(), sum(counts)
    unit = figures.unit_of(mean)
    total = figures.scaled(mean, unit)
    means = [Fraction(count, region.iteration_count) for count in counts]
    printed = figures.shared(region.name, means, mean, total, unit)
    columns = (
        Column("function", "name"),
        Column("an iteration", "number", "instructions", sums=True),
        Column("%", "number"),
    )
    rows = tuple(
        (Cell(name), cells.rounded(each), Cell(f"{100 * count / whole:.1f}", count / whole))
        for name, each, count in zip(names, printed, counts, strict=True)
    )
    last = (Cell("total"), cells.rounded(total), cells.NOTHING)
    return Table(f"of-{region.name}", f"Functions of {region.name}", columns, rows, last)


def _by_cpu(region: RegionCounts) -> Iterator[Table]:
    """What each of several CPUs executed, in all."""
    if not region.cpus:
        return
    columns = (
        Column("CPU", "name"),
        Column("kernel", "number", "instructions of the measured tasks' own work"),
        Column("user", "number", "likewise"),
        Column("interrupts", "number"),
        Column("idle", "number", "instructions of its idle task"),
        Column("other tasks", "number"),
    )
    rows = tuple(
        (
            Cell("the one that began" if at == 0 else f"another, {at}"),
            *map(cells.number, (cpu.own_kernel, cpu.own_user, cpu.interrupts)),
            cells.number(cpu.idle),
            cells.number(cpu.other - (cpu.idle or 0)),
        )
        for at, cpu in enumerate(region.cpus)
    )
    yield Table(f"cpus-of-{region.name}", "By CPU, in all iterations", columns, rows)


def _others(region: RegionCounts, most: int) -> Iterator[Table]:
    """What interrupts and other tasks executed on the region's time, in all."""
    others = [row for row in region.functions if row.context != "own" and row.cost.insns]
    ranked = sorted(others, key=lambda row: -row.cost.insns)
    columns = (Column("function", "name"), Column("whose"), Column("instructions", "number"))
    rows = tuple(
        (
            Cell(function_name(row.name, row.origin)),
            Cell(words.OTHERS[row.context]),
            cells.number(row.cost.insns),
        )
        for row in ranked[:most]
    )
    if rows:
        more = f", the {most} that did most of {len(ranked)}" if len(ranked) > most else ""
        caption = f"Of interrupts and other tasks meanwhile, in all iterations{more}"
        yield Table(f"others-of-{region.name}", caption, columns, rows)
