# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of one run: what its regions cost, and which functions did it."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from kdelta.counts.model import FunctionCost, RegionCounts, merged_regions
from kdelta.report.html import common, words
from kdelta.report.html.model import (
    Answer,
    Block,
    Cell,
    Column,
    Document,
    Fold,
    Prose,
    Section,
    Table,
    Verbatim,
)
from kdelta.report.layout import function_name
from kdelta.report.model import RunReport, Side
from kdelta.report.run_text import run_text
from kdelta.report.stored import Stored
from kdelta.report.text import COUNTED

_MOST = 40
_CONTEXTS = {"own": "own", "interrupts": "interrupts", "other": "other tasks"}


def document(stored: Stored, reports: Sequence[RunReport]) -> Document:
    """The page of a run, or of the perturbed runs of a command."""
    first = reports[0]
    run = first.run.run
    side = Side(run.kernel_spec, run.kernel_identity, run.kernel_release,
                tuple(report.run for report in reports))  # fmt: skip
    chosen = next((report for report in reports if report.counts), first)
    counts = chosen.counts
    text = "\n".join(
        run_text(report, functions=stored.shown.get("functions", 20)) for report in reports
    )
    return Document(
        title=f"kdelta run {run.id}",
        question=stored.question,
        answers=(_answer(chosen),),
        facts=(
            ("kernel", common.kernel_fact(side)),
            ("workload", f"{run.workload}, perturbation {chosen.run.run.perturbation}"),
            ("run", f"{chosen.run.run.id}, {chosen.run.run.started_text} UTC"),
            ("counted", COUNTED),
        ),
        sections=(
            *_sections(chosen),
            *common.notes([("Warnings", ((*counts.warnings, *first.warnings) if counts
                                         else first.warnings))]),
            common.environment(stored, run.machine, (("kernel", side),)),
            common.as_text(text),
        ),
        warnings=tuple(common.failures((("kernel", side),))),
    )  # fmt: skip


def _answer(report: RunReport) -> Answer:
    if report.counts is None:
        run = report.run.run
        detail = f": {run.detail}" if run.detail else ""
        return Answer((f"The run has no counts: {run.word}{detail}.",), tone="slower")
    regions = merged_regions(report.counts).values()
    total = sum(region.cost("own").insns for region in regions)
    kernel = sum(region.cost("own", kernel=True).insns for region in regions)
    part = f"{100 * kernel / total:.1f}{words.THIN}%" if total else "none"
    text = (
        f"It executed {words.number(Fraction(total))} instructions in "
        f"{words.counted(len(regions), 'region')}, {part} of them in the kernel."
    )
    return Answer((text,), tone="same")


def _sections(report: RunReport) -> Iterator[Section]:
    output = tuple(
        Fold(title, (Verbatim(text),))
        for title, text in (("standard output", report.stdout), ("standard error", report.stderr))
        if text.strip()
    )
    if report.counts is not None:
        regions = list(merged_regions(report.counts).values())
        yield Section("operations", "Regions", (_table(regions),))
        lead = Prose("What each function executed itself, by region; the rows add up to it.")
        folds: tuple[Block, ...] = tuple(_fold(region) for region in regions)
        yield Section("functions", "Functions", (lead, *folds))
    if output:
        yield Section("output", "What it printed", output)


def _table(regions: list[RegionCounts]) -> Table:
    columns = (
        Column("region", "name"),
        Column("iterations", "number"),
        Column("mean", "number", "own instructions an iteration"),
        Column("median", "number", "own instructions an iteration"),
        Column("kernel", "number", "of these, in the kernel"),
        Column("user", "number"),
        Column("loads", "number"),
        Column("stores", "number"),
        Column("interrupts", "number", "instructions an iteration on its time"),
        Column("other tasks", "number", "instructions an iteration meanwhile"),
    )
    rows = []
    for region in regions:
        own, count = region.cost("own"), region.iteration_count
        values = (
            region.mean_own_insns(),
            region.median_own_insns(),
            Fraction(region.cost("own", kernel=True).insns, count),
            Fraction(region.cost("own", kernel=False).insns, count),
            Fraction(own.loads, count),
            Fraction(own.stores, count),
            Fraction(region.cost("interrupts").insns, count),
            Fraction(region.cost("other").insns, count),
        )
        rows.append(
            (
                Cell(region.name, link=f"functions-of-{region.name}"),
                Cell(words.number(Fraction(count)), count),
                *(Cell(words.number(value), float(value)) for value in values),
            )
        )
    return Table("ops", "Regions, an iteration", columns, tuple(rows), filtered=True)


def _fold(region: RegionCounts) -> Fold:
    ranked = sorted(region.functions, key=lambda row: -row.cost.insns)
    named, rest = ranked[:_MOST], ranked[_MOST:]
    total = sum(row.cost.insns for row in ranked)
    columns = (
        Column("function", "name"),
        Column("whose", "word"),
        Column("instructions", "number", "of the whole region"),
        Column("%", "number"),
        Column("loads", "number"),
        Column("stores", "number"),
        Column("string bytes", "number"),
    )
    rows = [_row(row, total) for row in named]
    if rest:
        rows.append(
            (
                Cell(words.counted(len(rest), "other function")),
                Cell(""),
                *_part(sum(row.cost.insns for row in rest), total),
                *(
                    _figure(sum(getattr(row.cost, name) for row in rest))
                    for name in ("loads", "stores", "string_bytes")
                ),
            )
        )
    foot = ((Cell("total"), Cell(""), _figure(total), *[Cell("")] * 4),)
    table = Table(f"of-{region.name}", f"Functions of {region.name}", columns, tuple(rows), foot)
    summary = f"{region.name}: {words.number(region.mean_own_insns())} instructions an iteration"
    return Fold(summary, (table,), id=f"functions-of-{region.name}")


def _figure(count: int) -> Cell:
    return Cell(words.number(Fraction(count)), count)


def _part(insns: int, total: int) -> tuple[Cell, Cell]:
    part = 100 * insns / total if total else 0.0
    return _figure(insns), Cell(f"{part:.2f}", part)


def _row(row: FunctionCost, total: int) -> tuple[Cell, ...]:
    return (
        Cell(function_name(row.name, row.origin)),
        Cell(_CONTEXTS[row.context]),
        *_part(row.cost.insns, total),
        _figure(row.cost.loads),
        _figure(row.cost.stores),
        _figure(row.cost.string_bytes),
    )
