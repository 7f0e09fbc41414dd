# SPDX-License-Identifier: GPL-2.0-or-later
"""The document of a run's profile: its functions, all regions together."""

from collections.abc import Callable, Sequence

from kdelta.counts.model import CONTEXTS
from kdelta.infer.profiles.profile import (
    FIGURES,
    FunctionLine,
    Part,
    Sort,
    by_part,
    part_of,
    ranked,
    summed,
)
from kdelta.report import cells, words
from kdelta.report import parts as common
from kdelta.report.document import Answer, Cell, Column, Document, Fold, Prose, Section, Table
from kdelta.report.lines import function_name
from kdelta.report.model import Side
from kdelta.report.stored import Stored
from kdelta.studies.profile.model import ProfileReport
from kdelta.studies.profile.parts import CODE, COUNTED, WORK, as_one, left_out_text

_NAMED = 3
_MOST = 500
"""Rows of the table; what is left is in one."""

Figure = Callable[[FunctionLine], float | None]


def document(stored: Stored, report: ProfileReport) -> Document:
    """Return the document of a profile. LabError if the functions do not add up."""
    run = report.run.run
    side = Side(run.kernel_spec, run.kernel_identity, run.kernel_release, (report.run,))
    lines = [line for region in report.regions for line in region.chosen(report.selection)]
    rows = ranked(summed(lines))
    left_out = tuple(Prose(said) for said in (left_out_text(report.selection),) if said)
    return Document(
        title=f"{run.workload} on {run.kernel_release or run.kernel_spec}: by function",
        made=common.made_of(stored),
        answers=(_answer(report, rows),),
        facts=(
            ("kernel", common.kernel_fact(side)),
            ("run", f"{run.id}, {run.started_text} UTC, perturbation {run.perturbation}"),
            ("workload", run.workload),
            ("regions", words.listed([region.name for region in report.regions])),
            ("counted", COUNTED),
        ),
        sections=(
            Section("functions", "Functions", (*left_out, _table(rows))),
            Section("whose", "Whose work, and whose code", (_parts(report),)),
        ),
        environment=common.environment(stored, run.machine, (("kernel", side),)),
        notes=report.notes,
        warnings=report.warnings,
    )


def _answer(report: ProfileReport, rows: Sequence[FunctionLine]) -> Answer:
    if not rows:
        return Answer(("Nothing was executed there.",), tone="unresolved")
    whole = as_one(rows).cost.insns
    named = [
        f"{function_name(row.name, row.origin)} ({_part(row.cost.insns, whole)})"
        for row in rows[:_NAMED]
    ]
    text = (
        f"{words.counted(whole, 'instruction')} in {words.counted(len(report.regions), 'region')} "
        f"and {words.counted(len(rows), 'function')}. Most: {words.listed(named)}."
    )
    return Answer((text,), tone="same")


def _part(insns: int, whole: int) -> str:
    return f"{100 * insns / whole:.1f} %" if whole else "0 %"


def _table(rows: Sequence[FunctionLine]) -> Table:
    columns: list[tuple[Column, Figure]] = [
        (
            Column("own", "number", "instructions of the function itself", sums=True),
            lambda r: r.cost.insns,
        ),
        (Column("inclusive", "number", "with all that it called"), lambda r: r.inclusive),
        (Column("calls", "number"), lambda r: r.calls),
        (Column("loads", "number"), lambda r: r.cost.loads),
        (Column("stores", "number"), lambda r: r.cost.stores),
        (Column("string bytes", "number"), lambda r: r.cost.string_bytes),
        (Column("special", "number", "special instructions"), _specials),
        (Column("misses", "number", "on the CPU, of all kinds"), _misses),
    ]
    known = [(column, figure) for column, figure in columns if any(map(figure, rows))]
    named, rest = rows[:_MOST], rows[_MOST:]
    total = as_one(rows) if rows else None
    whole = total.cost.insns if total else 0
    figures = [figure for _, figure in known]
    shown = [
        _row(function_name(row.name, row.origin), CODE[part_of(row.origin)], row, whole, figures)
        for row in named
    ]
    if rest:
        name = words.counted(len(rest), "other function")
        shown.append(_row(name, "", as_one(rest), whole, figures))
    foot = _row("total", "", total, whole, figures) if total else ()
    heads = (
        Column("function", "name"),
        Column("code", "word"),
        Column("%", "number", "of all instructions"),
        *(column for column, _ in known),
    )
    caption = "What each function executed, in all regions together"
    return Table("functions-table", caption, heads, tuple(shown), foot, filtered=True)


def _specials(row: FunctionLine) -> int:
    return sum(row.cost.specials.values())


def _misses(row: FunctionLine) -> float | None:
    return FIGURES[Sort.MISSES](row) if row.modelled else None


def _row(
    name: str, code: str, row: FunctionLine, whole: int, figures: Sequence[Figure]
) -> tuple[Cell, ...]:
    values = [figure(row) for figure in figures]
    return (
        Cell(name),
        Cell(code, tone="same" if code else ""),
        Cell(_part(row.cost.insns, whole), float(row.cost.insns)),
        *(cells.number(value) for value in values),
    )


def _parts(report: ProfileReport) -> Fold:
    counts = by_part(report.regions)
    columns = (
        Column("code", "name"),
        *(Column(WORK[one], "number", sums=True) for one in CONTEXTS),
    )
    rows = tuple(
        (
            Cell(CODE[part]),
            *(cells.number(counts[part, one]) for one in CONTEXTS),
        )
        for part in Part
    )
    totals = [sum(counts[part, one] for part in Part) for one in CONTEXTS]
    foot = (Cell("total"), *(cells.number(total) for total in totals))
    table = Table("parts-table", "Instructions, whatever was picked above", columns, rows, foot)
    return Fold("Instructions of tasks, interrupts and others", (table,), open=True)
