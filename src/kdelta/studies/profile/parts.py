# SPDX-License-Identifier: GPL-2.0-or-later
"""Parts of a profile as text: which run it is, whose work and whose code, and functions."""

from collections.abc import Sequence
from fractions import Fraction

import msgspec

from kdelta.counts.model import CONTEXTS
from kdelta.infer.profiles.profile import (
    FIGURES,
    OF_DATA,
    FunctionLine,
    Modelled,
    Part,
    RegionProfile,
    Selection,
    Sort,
    by_part,
    ranked,
    summed,
)
from kdelta.report import figures
from kdelta.report.lines import WIDTH, function_name, labelled, machine_lines, wrapped
from kdelta.report.model import ReportedRun
from kdelta.spec.errors import LabError
from kdelta.spec.identity import short
from kdelta.studies.profile.model import ProfileReport

COUNTED = "instructions; a string operation (rep movs) is one, and its bytes are apart"
INSNS = 13
PERCENT = 7
_PART = 16
_NAMED = 12
"""So many regions are named."""

WORK = {"own": "own work", "interrupts": "interrupts", "other": "other tasks"}
CODE = {Part.KERNEL: "kernel", Part.MODULES: "modules", Part.USER: "user code"}


def head_lines(label: str, reported: ReportedRun) -> list[str]:
    """Which run it is."""
    run = reported.run
    what = f"run {run.id}, {run.started_text} UTC, {run.workload}, perturbation {run.perturbation}"
    lines = labelled(label, what)
    lines += labelled("kernel", run.kernel_spec)
    lines += labelled("", f"release {run.kernel_release}, identity {short(run.kernel_identity)}")
    return lines + machine_lines(run.machine)


def region_lines(regions: Sequence[RegionProfile], left_out: Sequence[str] = ()) -> list[str]:
    """Which regions are summed up."""
    names = [f"{region.name} x{region.iterations}".replace(" ", "\0") for region in regions]
    if len(names) > _NAMED + 1:
        names[_NAMED:] = [f"and {len(names) - _NAMED} more"]
    lines = labelled("regions" if len(regions) > 1 else "region", ", ".join(names))
    lines = [line.replace("\0", " ") for line in lines]
    if not left_out:
        return lines
    others = ", ".join(left_out) if len(left_out) <= _NAMED else f"{len(left_out)} others"
    return lines + labelled("", f"without {others}")


def part_lines(regions: Sequence[RegionProfile], selection: Selection) -> list[str]:
    """A table of instructions by whose code and whose work; what is not looked at is in it, too."""
    counts = by_part(regions)
    heads = "".join(f"{WORK[context]:>{INSNS}}" for context in CONTEXTS)
    lines = [f"{'instructions':<{_PART}}{heads}"]
    for part in Part:
        cells = "".join(f"{counts[part, context]:>{INSNS}}" for context in CONTEXTS)
        lines.append(f"{CODE[part]:<{_PART}}{cells}")
    totals = [sum(counts[part, context] for part in Part) for context in CONTEXTS]
    lines.append(f"{'total':<{_PART}}" + "".join(f"{total:>{INSNS}}" for total in totals))
    if said := left_out_text(selection):
        lines += wrapped(said, "", "")
    return lines


def left_out_text(selection: Selection) -> str:
    """What of these is not among the functions that follow, and how to see it."""
    works = [WORK[one] for one in CONTEXTS if one not in selection.contexts]
    codes = [CODE[part] for part in Part if part not in selection.parts]
    said = []
    if works:
        said.append(f"{' and '.join(works)} (--context all)")
    if codes:
        said.append(f"{' and '.join(codes)} (--only)")
    return f"Left out below: {', '.join(said)}." if said else ""


def function_lines(
    report: ProfileReport, limit: int, by: Sort, columns: Sequence[Sort] = ()
) -> list[str]:
    """The functions of all regions together, and lines that add up to their total. Without
    `columns`, those are shown that are known and fit.
    """
    lines = [line for region in report.regions for line in region.chosen(report.selection)]
    whole = sum(line.cost.insns for line in lines)
    rows = ranked(summed(lines), by)
    if not rows:
        return ["nothing was executed there"]
    named = rows if len(rows) <= limit + 1 else rows[:limit]
    shown = [(line, function_name(line.name, line.origin)) for line in named]
    if len(rows) > len(named):
        rest = as_one(rows[len(named) :])
        shown.append((rest, f"other functions ({len(rows) - len(named)})"))
    printed = sum(line.cost.insns for line, _ in shown)
    total = as_one(rows)
    if not printed == total.cost.insns == whole:
        raise LabError(
            f"the functions add up to {printed} instructions, and the regions have {whole}",
            "this is an error of kdelta; please report it with the output of --json",
        )
    columns = columns or usual_columns(report, by)
    heads = "".join(f"{_HEADS[column]:>{_WIDTHS[column]}}" for column in columns)
    found = [f"{'insns':>{INSNS}}{'%':>{PERCENT}}{heads}  function"]
    for line, name in [*shown, (total, "total")]:
        cells = "".join(f"{_cell(line, c, whole):>{_WIDTHS[c]}}" for c in columns)
        figures_ = f"{line.cost.insns:>{INSNS}}{percent(line.cost.insns, whole):>{PERCENT}}{cells}"
        found += named_line(figures_, f"  {name}")
    return found


def named_line(cells: str, name: str) -> list[str]:
    """Figures and a name after them, which has the next line where there is no room."""
    if len(cells + name) <= WIDTH:
        return [cells + name]
    return [cells, f"{'':{max(0, min(PERCENT + INSNS, WIDTH - len(name)))}}{name}"]


def usual_columns(report: ProfileReport, by: Sort) -> tuple[Sort, ...]:
    """Those that fit besides instructions and a name: what they are ranked by is among them."""
    known = [line.modelled for region in report.regions for line in region.lines if line.modelled]
    modelled, data = bool(known), any("l1d" in one.misses for one in known)
    found = [Sort.LOADS, Sort.STORES]
    found += [] if modelled or report.calls != "none" else [Sort.STRING, Sort.SPECIAL]
    if modelled:
        found = [Sort.MISSES, *([Sort.L1D, Sort.DTLB] if data else []), Sort.CYCLES]
    if report.calls != "none" and not data:
        found = [Sort.INCLUSIVE, *([] if modelled else [Sort.CALLS]), *found]
    if by not in found and by is not Sort.INSNS:
        found[-1] = by
    return tuple(found)


def as_one(lines: Sequence[FunctionLine]) -> FunctionLine:
    """All of these as if they were one function. What they called together is not known."""
    alike = [
        msgspec.structs.replace(line, origin="", name="", inclusive=None, calls=None)
        for line in lines
    ]
    return summed(alike)[0]


def _cell(line: FunctionLine, column: Sort, whole: int) -> str:
    if column is Sort.INCLUSIVE:
        return percent(line.inclusive, whole)
    if column is Sort.CYCLES:
        return cycles(line.modelled) if line.modelled else ""
    if column in (Sort.CALLS, Sort.MISSES) and (line.calls, line.modelled) == (None, None):
        return ""
    if column in OF_DATA and (line.modelled is None or "l1d" not in line.modelled.misses):
        return ""
    figure = FIGURES[column](line)
    return figures.short(Fraction(figure)) if figure else "-"


def cycles(one: Modelled) -> str:
    """From how many model cycles to how many."""
    return "-".join(figures.short(Fraction(round(value))) for value in (one.low, one.high))


def percent(count: int | None, whole: int) -> str:
    """A part of a whole; nothing where it is not known."""
    return "" if count is None or not whole else f"{100 * count / whole:.1f}%"


_HEADS = {
    Sort.INCLUSIVE: "incl.",
    Sort.CALLS: "calls",
    Sort.LOADS: "loads",
    Sort.STORES: "stores",
    Sort.STRING: "string",
    Sort.SPECIAL: "special",
    Sort.MISSES: "misses",
    Sort.L1D: "l1d",
    Sort.L2D: "l2d",
    Sort.DTLB: "dtlb",
    Sort.CYCLES: "cycles",
    Sort.INSNS: "insns",
}
_WIDTHS = dict.fromkeys(Sort, 8) | {Sort.CALLS: 7, Sort.CYCLES: 12}
