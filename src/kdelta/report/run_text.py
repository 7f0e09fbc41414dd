# SPDX-License-Identifier: GPL-2.0-or-later
"""One run as text: what its regions cost, and which functions did it."""

from collections.abc import Sequence
from fractions import Fraction

from kdelta.counts.model import RegionCounts, RunCounts, merged_regions
from kdelta.infer.functions import by_function
from kdelta.report import figures
from kdelta.report.layout import (
    WIDTH,
    finished,
    function_name,
    labelled,
    machine_lines,
    quoted,
    warning_lines,
    wrapped,
)
from kdelta.report.model import ReportedRun, RunReport
from kdelta.report.packets import run_lines as packet_lines
from kdelta.report.text import COUNTED
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.identity import short

NAME = 21
ITERATIONS = 10
FIGURE = 11
EXPLAINED_REGIONS = 3
"""So many regions are explained unasked; a table of dozens names those to ask for."""

OUTPUT_LINES = 20


def run_text(report: RunReport, regions: Sequence[str] = (), functions: int = 20) -> str:
    """A run's report. `regions` are those whose functions are named, all if there are few.

    Raises UserError for a region that the run does not have.
    """
    lines = _head(report.run)
    if report.counts is not None:
        lines += labelled("counted", COUNTED)
    if not report.run.ok:
        lines += quoted(report.run.console_tail)
    for title, text in (("standard output", report.stdout), ("standard error", report.stderr)):
        lines += _output(title, text)
    if report.counts is not None:
        lines += _counts(report.counts, regions, functions)
        lines += warning_lines(report.counts.warnings)
    lines += warning_lines(report.warnings)
    return finished(lines)


def _head(reported: ReportedRun) -> list[str]:
    run = reported.run
    took = "" if run.seconds is None else f", took {run.seconds:.1f} s"
    stored = ", answered from the store (--again reruns it)" if reported.from_store else ""
    lines = labelled("run", f"{run.id}, {run.started_text} UTC{took}{stored}")
    lines += labelled("status", run.word + (f": {run.detail}" if run.detail else ""))
    lines += labelled("kernel", run.kernel_spec)
    if run.kernel_identity:
        identity = short(run.kernel_identity)
        lines += labelled("", f"release {run.kernel_release}, identity {identity}")
    lines += machine_lines(run.machine)
    return lines + labelled("workload", f"{run.workload}, perturbation {run.perturbation}")


def _output(title: str, text: str) -> list[str]:
    said = text.rstrip("\n").split("\n") if text.strip() else []
    if not said:
        return []
    left_out = len(said) - OUTPUT_LINES
    more = f", the last {OUTPUT_LINES} of {len(said)} lines" if left_out > 0 else ""
    return ["", title + more, *quoted(said[-OUTPUT_LINES:])]


def _counts(counts: RunCounts, asked: Sequence[str], functions: int) -> list[str]:
    regions = merged_regions(counts)
    for name in asked:
        if name not in regions:
            raise UserError(f"the run has no region {name!r}", f"it has: {', '.join(regions)}")
    if not regions:
        return ["", "no region: the workload marked none, and did not run as one"]
    lines = ["", *_table(list(regions.values()))]
    lines += _meanwhile(list(regions.values()))
    lines += packet_lines(regions.values())
    lines += _specials(list(regions.values()))
    chosen = list(asked) or (list(regions) if len(regions) <= EXPLAINED_REGIONS else [])
    for name in chosen:
        lines += _functions(regions[name], functions)
    if not chosen:
        lines += ["", "--operation NAME names the functions of a region."]
    return lines


def _named(name: str, cells: str) -> list[str]:
    if len(name) > NAME:
        return [name, f"{'':<{NAME}} {cells}"]
    return [f"{name:<{NAME}} {cells}"]


def _cells(*cells: str) -> str:
    return " ".join(f"{cell:>{FIGURE}}" for cell in cells)


def _each(value: Fraction, unit: int, *, aligned: bool) -> str:
    return figures.plain(figures.scaled(value, unit), FIGURE, aligned=aligned)


def _table(regions: Sequence[RegionCounts]) -> list[str]:
    heads = _cells("insns each", "median", "kernel", "user")
    lines = [f"{'region':<{NAME}} {'iterations':>{ITERATIONS}} {heads}"]
    aligned = any(not figures.is_whole(region.mean_own_insns()) for region in regions)
    for region in regions:
        count = region.iteration_count
        mean = region.mean_own_insns()
        unit = figures.unit_of(mean)
        # What is printed adds up: the user's part is what the kernel's leaves of the whole.
        whole = figures.scaled(mean, unit)
        kernel = figures.scaled(Fraction(region.cost("own", kernel=True).insns, count), unit)
        cells = _cells(
            figures.plain(whole, FIGURE, aligned=aligned),
            _each(region.median_own_insns(), unit, aligned=aligned),
            figures.plain(kernel, FIGURE, aligned=aligned),
            figures.plain(whole - kernel, FIGURE, aligned=aligned),
        )
        lines += _named(region.name, f"{count:>{ITERATIONS}} {cells}")
    return lines


def _meanwhile(regions: Sequence[RegionCounts]) -> list[str]:
    """What was executed on a region's time and not by it, and its idle time; whole regions."""
    rows = []
    for region in regions:
        idle = region.idle_ticks()
        figures_of = region.cost("interrupts").insns, region.cost("other").insns, idle
        if any(figures_of):
            cells = ["-" if figure is None else str(figure) for figure in figures_of]
            rows += _named(region.name, _cells(*cells))
    if not rows:
        return []
    head = _cells("interrupts", "other tasks", "idle ns")
    return ["", f"{'meanwhile, in all':<{NAME}} {head}", *rows]


def _specials(regions: Sequence[RegionCounts]) -> list[str]:
    rows = []
    for region in regions:
        cost = region.cost("own")
        each = {**cost.specials, "string bytes": cost.string_bytes}
        words = [
            f"{kind}\0{figures.number(Fraction(count, region.iteration_count))}".replace(" ", "\0")
            for kind, count in each.items()
            if count
        ]
        if words:
            name = region.name if len(region.name) <= NAME else f"{region.name}:"
            lines = wrapped(", ".join(words), f"{name:<{NAME}} ", " " * (NAME + 1))
            rows += [line.replace("\0", " ") for line in lines]
    return ["", "special instructions and string bytes an iteration", *rows] if rows else []


def _functions(region: RegionCounts, limit: int) -> list[str]:
    """The functions of the region's own work, and lines that add up to it as printed."""
    own = [row for row in region.functions if row.context == "own"]
    counted = {key: counts[0] for key, counts in by_function([own]).items() if counts[0]}
    ranked = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    whole = region.cost("own").insns
    if sum(counted.values()) != whole:
        raise LabError(f"{region.name}: the functions do not add up to {whole} instructions")
    named = ranked if len(ranked) <= limit + 1 else ranked[:limit]
    rest = [count for _, count in ranked[len(named) :]]
    counts = [count for _, count in named] + ([sum(rest)] if rest else [])
    unit = figures.unit_of(region.mean_own_insns())
    total = figures.scaled(region.mean_own_insns(), unit)
    means = [Fraction(count, region.iteration_count) for count in counts]
    printed = figures.rounded_to_total(means, total, unit) if means else []
    aligned = any(value % figures.SCALE for value in printed)
    each = "" if region.iteration_count == 1 else " an iteration"
    title = f"{region.name}: instructions{each}"
    lines = ["", title, *_origins(region, whole), f"{'insns':>{FIGURE}} {'%':>7}  function"]
    names = [function_name(name, origin) for (origin, name), _ in named]
    names += [f"other functions ({len(rest)})"] if rest else []
    for value, count, name in zip(printed, counts, names, strict=True):
        part = f"{100 * count / whole:.1f}%"
        line = f"{figures.plain(value, FIGURE, aligned=aligned)} {part:>7}  {name}"
        lines += [line] if len(line) <= WIDTH else [line[: FIGURE + 8], f"{'':>14}{name}"]
    lines.append(f"{figures.plain(total, FIGURE, aligned=aligned)} {'':>7}  total")
    return lines


def _origins(region: RegionCounts, whole: int) -> list[str]:
    """Where the executed code came from, in one line."""
    by_origin: dict[str, int] = {}
    for row in region.functions:
        if row.context == "own" and row.cost.insns:
            by_origin[row.origin] = by_origin.get(row.origin, 0) + row.cost.insns
    ranked = sorted(by_origin.items(), key=lambda item: -item[1])
    words = [f"{origin}\0{100 * insns / whole:.1f}%" for origin, insns in ranked]
    lines = wrapped(", ".join(words), "  ", "  ") if words else []
    return [line.replace("\0", " ") for line in lines]
