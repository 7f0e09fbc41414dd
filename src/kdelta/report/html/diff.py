# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of what functions gained and lost from one run to another."""

from kdelta.infer.diff import DiffLine
from kdelta.report import figures
from kdelta.report.diff_model import DiffReport
from kdelta.report.diff_text import COUNTS, diff_text, function_rows
from kdelta.report.html import common, words
from kdelta.report.html.model import Answer, Cell, Chip, Column, Document, Section, Table
from kdelta.report.model import ReportedRun, Side
from kdelta.report.stored import Stored

_FUNCTIONS = 40
_NAMED = 3


def document(stored: Stored, report: DiffReport) -> Document:
    """The page of two runs."""
    sides = (("A", _side(report.a)), ("B", _side(report.b)))
    shown = stored.shown.get("functions", _FUNCTIONS)
    return Document(
        title="kdelta diff",
        question=stored.question,
        answers=(_answer(report),),
        facts=(
            *((who, common.kernel_fact(side)) for who, side in sides),
            ("workload", report.b.run.workload),
            ("regions", words.listed([region.name for region in report.b_regions])),
            ("counted", COUNTS[report.by] + (", one pass of each region" if report.each else "")),
        ),
        sections=(
            Section("functions", "Functions", (_table(report),)),
            *common.notes([("Of the runs", report.notes), ("Warnings", report.warnings)]),
            common.environment(stored, report.b.run.machine, sides),
            common.as_text(diff_text(report, shown)),
        ),
    )


def _side(one: ReportedRun) -> Side:
    run = one.run
    return Side(run.kernel_spec, run.kernel_identity, run.kernel_release, (one,))


def _answer(report: DiffReport) -> Answer:
    *rows, (total, _) = function_rows(report, 0)
    more, less = (sum(sign * line.added > 0 for line, _ in rows) for sign in (1, -1))
    text = (
        f"{words.signed(total.added)} {COUNTS[report.by]} ({words.percent(total.percent)}), exact "
        "of these two runs; kdelta compare tells their spread."
    )
    most = sorted(rows, key=lambda row: -abs(row[0].added))[:_NAMED]
    if most:
        named = [f"{name} ({words.signed(line.added)})" for line, name in most]
        text += f" Most: {words.listed(named)}."
    chips = (Chip("do more", more, "slower"), Chip("do less", less, "faster"))
    tone = "slower" if total.added > 0 else "faster" if total.added < 0 else "same"
    return Answer((text,), tuple(chip for chip in chips if chip.count), tone=tone)


def _table(report: DiffReport) -> Table:
    """All functions that changed, in figures that add up as printed."""
    *rows, (total, _) = function_rows(report, 0)
    whole = figures.scaled(total.added)
    printed = figures.rounded_to_total([line.added for line, _ in rows], whole)
    columns = (
        Column("function", "name"),
        Column("diff", "number", f"{COUNTS[report.by]}, B less A"),
        Column("%", "number", "of the function's own in A"),
        Column("A", "number"),
        Column("B", "number"),
    )
    return Table(
        "functions-table",
        "What each function gained and lost",
        columns,
        tuple(_row(line, name, diff) for (line, name), diff in zip(rows, printed, strict=True)),
        foot=(_row(total, "total", whole),),
        filtered=True,
    )


def _row(line: DiffLine, name: str, diff: int) -> tuple[Cell, ...]:
    return (
        Cell(name),
        Cell(words.hundredths(diff), diff),
        Cell(words.percent(line.percent), float(line.percent)),
        Cell(words.number(line.a), float(line.a)),
        Cell(words.number(line.b), float(line.b)),
    )
