# SPDX-License-Identifier: GPL-2.0-or-later
"""The document of a run's profile: its functions, all regions together, and other views."""

from collections.abc import Iterator, Sequence

import msgspec

from kdelta.counts.model import CONTEXTS
from kdelta.infer.profiles.profile import (
    FIGURES,
    OF_DATA,
    FunctionLine,
    Part,
    Sort,
    by_part,
    code_part,
    ranked,
    summed,
)
from kdelta.report import cells, words
from kdelta.report import parts as common
from kdelta.report.document import (
    Answer,
    Cell,
    Column,
    Document,
    Fold,
    Prose,
    Section,
    Table,
    Verbatim,
)
from kdelta.report.lines import function_name
from kdelta.report.model import KernelRuns
from kdelta.report.names import kernel_name
from kdelta.report.stored import Stored
from kdelta.studies.profile.model import ProfileReport, ProfileViews
from kdelta.studies.profile.parts import CODE, COUNTED, WORK, as_one, cycles, left_out_text, share
from kdelta.studies.profile.views_text import (
    annotated_lines,
    callers_lines,
    calls_lines,
    no_lines,
    source_lines,
)

_REGIONS = 12
"""So many regions are named."""

_NAMED = 3
_MOST = 500
"""Rows of a page's table; what is left is in one."""


class FunctionsAsked(msgspec.Struct, frozen=True):
    """Of the table of functions: how many are named, what they are ranked by, and the figures that
    are shown of them; None is all that are known, and whose code they are.
    """

    limit: int = _MOST
    by: Sort = Sort.INSNS
    columns: tuple[Sort, ...] | None = None


ON_A_PAGE = FunctionsAsked()


def profile_document(
    stored: Stored, report: ProfileReport, asked: FunctionsAsked = ON_A_PAGE
) -> Document:
    """Return the document of a profile. Other views that were asked for stand in place of the
    functions where their columns are named, and above them on a page. LabError if the functions do
    not add up.
    """
    run = report.run.run
    side = common.run_side(report.run)
    lines = [line for region in report.regions for line in region.chosen(report.selection)]
    rows = ranked(summed(lines), asked.by)
    left_out = [Prose(text) for text in (left_out_text(report.selection),) if text]
    hidden = report.views.any and asked.columns is not None
    functions = (_table(rows, asked),) if rows and not hidden else ()
    return Document(
        title=f"{run.workload} on {kernel_name(run.kernel_spec, run.kernel_release)}: by function",
        made=common.made_of(stored),
        answers=(_answer(report, rows),),
        facts=tuple(_facts(report, side)),
        sections=(
            *_views(report.views, asked.limit),
            Section("functions", "Functions", functions),
            Section("whose", "Whose work, and whose code", (_parts(report), *left_out)),
        ),
        environment=common.environment(stored, run.machine, (("kernel", side),)),
        notes=report.notes,
        warnings=report.warnings,
    )


def _facts(report: ProfileReport, side: KernelRuns) -> Iterator[tuple[str, str]]:
    run = report.run.run
    yield "kernel", common.kernel_fact(side)
    yield "run", f"{run.id}, {run.started_text} UTC, perturbation {run.perturbation}"
    yield "workload", run.workload
    regions = [f"{one.name} x{one.iterations}" for one in report.regions]
    yield "regions", words.some(regions, _REGIONS)
    if report.left_out:
        yield "without", words.some(report.left_out, _REGIONS)
    yield "counted", COUNTED


def _views(views: ProfileViews, limit: int) -> Iterator[Section]:
    """Calls, source lines and instructions, as far as they were asked for."""
    lines = calls_lines(views.tree, views.part) if views.tree else []
    lines += callers_lines(views.callers, views.part)
    if views.lines is not None:
        lines += source_lines(views.lines, limit)
        lines += no_lines(views.unlined)
    for function in views.annotated:
        lines += annotated_lines(function, views.places)
    if lines:
        text = "\n".join(line.rstrip() for line in lines).strip("\n")
        yield Section("views", "Calls, lines and instructions", (Verbatim(text, wide=True),))


def _answer(report: ProfileReport, rows: Sequence[FunctionLine]) -> Answer:
    if not rows:
        return Answer(("Nothing was executed there.",), tone="unresolved")
    whole = as_one(rows).cost.insns
    named = [
        f"{function_name(row.name, row.origin)} ({share(row.cost.insns, whole) or '0%'})"
        for row in ranked(rows)[:_NAMED]
    ]
    text = (
        f"{words.counted(whole, 'instruction')} in {words.counted(len(report.regions), 'region')} "
        f"and {words.counted(len(rows), 'function')}. Most: {words.listed(named)}."
    )
    return Answer((text,), tone="same")


def _table(rows: Sequence[FunctionLine], asked: FunctionsAsked) -> Table:
    named = rows if len(rows) <= asked.limit + 1 else rows[: asked.limit]
    total, rest = as_one(rows), rows[len(named) :]
    whole = total.cost.insns
    known = (sort for sort in COLUMNS if any(_cell(row, sort, whole).text for row in rows))
    shown = tuple(known) if asked.columns is None else asked.columns

    def row(line: FunctionLine, name: str, code: str = "") -> tuple[Cell, ...]:
        return (
            Cell(name),
            *((Cell(code, tone="same" if code else ""),) if asked.columns is None else ()),
            cells.number(line.cost.insns),
            Cell(share(line.cost.insns, whole), float(line.cost.insns)),
            *(_cell(line, sort, whole) for sort in shown),
        )

    others = f"other functions ({len(rest)})"
    return Table(
        "functions-table",
        "What each function executed, in all regions together",
        (
            Column("function", "name"),
            *((Column("code", "word"),) if asked.columns is None else ()),
            Column("insns", "number", "instructions of the function itself", sums=True),
            Column("%", "number", "of all instructions"),
            *(COLUMNS[sort] for sort in shown),
        ),
        (
            *(row(one, function_name(one.name, one.origin), CODE[code_part(one.origin)])
              for one in named),
            *((row(as_one(rest), others),) if rest else ()),
        ),
        row(total, "total"),
        filtered=True,
    )  # fmt: skip


def _cell(line: FunctionLine, column: Sort, whole: int) -> Cell:
    """A figure of a function; nothing where it is zero or not known."""
    figure = FIGURES[column](line)
    if column in OF_DATA and (line.modelled is None or "l1d" not in line.modelled.misses):
        return cells.NOTHING
    if not figure:
        return cells.NOTHING
    if column is Sort.INCLUSIVE:
        return Cell(share(line.inclusive, whole), figure)
    if column is Sort.CYCLES and line.modelled:
        return Cell(cycles(line.modelled), figure)
    return cells.number(figure)


def _parts(report: ProfileReport) -> Fold:
    counts = by_part(report.regions)
    columns = (
        Column("code", "name"),
        *(Column(WORK[one], "number", sums=True) for one in CONTEXTS),
    )
    rows = tuple(
        (Cell(CODE[part]), *(cells.number(counts[part, one]) for one in CONTEXTS)) for part in Part
    )
    totals = (sum(counts[part, one] for part in Part) for one in CONTEXTS)
    total = (Cell("total"), *map(cells.number, totals))
    table = Table("parts-table", "Instructions, whatever was picked above", columns, rows, total)
    return Fold("Instructions of tasks, interrupts and others", (table,), open=True)


COLUMNS = {
    Sort.INCLUSIVE: Column("incl. %", "number", "with all that it called"),
    Sort.CALLS: Column("calls", "number"),
    Sort.LOADS: Column("loads", "number"),
    Sort.STORES: Column("stores", "number"),
    Sort.STRING: Column("string", "number", "bytes of string operations"),
    Sort.SPECIAL: Column("special", "number", "special instructions"),
    Sort.MISSES: Column("misses", "number", "of code, on the CPU"),
    Sort.L1D: Column("l1d", "number", "misses of data"),
    Sort.L2D: Column("l2d", "number", "misses of data"),
    Sort.DTLB: Column("dtlb", "number", "misses of data"),
    Sort.CYCLES: Column("cycles", "number", "of the model, with misses hidden and not"),
}
"""The figures of a function besides its instructions."""
