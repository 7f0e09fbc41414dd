# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of a search for a better order of functions."""

from collections.abc import Iterator

from kdelta.report.cut import cut_note
from kdelta.report.cycles import cpu_line
from kdelta.report.html import common, words
from kdelta.report.html.model import (
    Answer,
    Block,
    Cell,
    Column,
    Document,
    Items,
    Prose,
    Section,
    Table,
)
from kdelta.report.layout_text import KINDS
from kdelta.report.place_model import Applied, PlacedMisses, PlaceReport
from kdelta.report.place_text import place_text
from kdelta.report.stored import Stored

_SHIPPED = "shipped"


def document(stored: Stored, report: PlaceReport) -> Document:
    """The page of an order."""
    sides = [("kernel", report.kernel)]
    if report.applied:
        sides.append(("relinked", report.applied.kernel))
    warnings = (*report.warnings, *(report.applied.warnings if report.applied else ()))
    return Document(
        title="kdelta place",
        question=stored.question,
        answers=tuple(_answers(report)),
        facts=(
            ("kernel", common.kernel_fact(report.kernel)),
            ("workload", ", ".join(report.workloads)),
            ("CPU", cpu_line(report.cpu)),
            ("caches", "; ".join(report.caches)),
            ("order", _order(report)),
        ),
        sections=(
            *_sections(report),
            *common.unlike_section(report.cpu.name, report.unlike),
            *common.notes(
                [
                    ("Of the operations", (*report.notes, *map(cut_note, report.cut))),
                    ("Warnings", tuple(dict.fromkeys(warnings))),
                ]
            ),
            common.environment(stored, report.machine, sides),
            common.as_text(place_text(report)),
        ),
        warnings=tuple(common.failures(sides)),
    )


def _order(report: PlaceReport) -> str:
    if not report.file:
        return "none is better than the layout as shipped" if report.regions else "none"
    filling = f", {report.padding} of them only to fill" if report.padding else ""
    return f"{report.file}: {report.functions} names{filling}, method {report.method}"


def _cost(value: float) -> str:
    return f"{100 * value:.2f}{words.THIN}%"


def _answers(report: PlaceReport) -> Iterator[Answer]:
    if not report.regions:
        yield Answer(("Nothing is known: no operation ran.",), tone="unresolved")
        return
    random = f"half of the random orders {_cost(report.median)}, the best {_cost(report.best)}"
    shipped = report.costs.get(_SHIPPED)
    as_shipped = f"as shipped they cost {_cost(shipped)}, " if shipped is not None else ""
    if report.file:
        text = (
            f"With this order, misses cost {_cost(report.costs[report.method])} of what the "
            f"instructions do, if none is hidden; {as_shipped}{random}."
        )
        payers = report.payers()
        if payers:
            names = words.listed([one.name for one in payers[:3]])
            text += (
                f" {words.counted(len(payers), 'operation pays', 'operations pay')} for it: {names}"
            )
            text += "." if len(payers) <= 3 else " and others."
        yield Answer((text,), tone="faster")
    else:
        yield Answer((f"No order is better than the layout as shipped; {random}.",), tone="same")
    if report.applied and report.applied.regions:
        found = report.applied
        total, was = found.total("measured"), found.total("shipped")
        part = f" ({words.fraction((total - was) / was)})" if was else ""
        text = (
            f"Relinked in this order, the kernel was measured: {words.number(round(total))} L1I "
            f"misses of a whole run against {words.number(round(was))} as shipped{part}."
        )
        right = sum(one.is_as_predicted for one in found.regions)
        text += f" {right} of {words.counted(len(found.regions), 'operation')} are as predicted."
        yield Answer((text,), about="measured", tone="faster" if total < was else "slower")


def _sections(report: PlaceReport) -> Iterator[Section]:
    if not report.regions:
        return
    yield Section("methods", "Methods", (_methods(report),))
    yield Section("operations", "Operations", (_cycles(report),))
    for kind in dict.fromkeys(kind for one in report.regions for kind in one.misses):
        yield _kind_section(kind, report)
    if payers := report.payers():
        names = tuple(one.name for one in payers)
        blocks: tuple[Block, ...] = (Prose("These have more misses than as shipped:"), Items(names))
        yield Section("payers", "Who pays for it", blocks)
    if report.applied and report.applied.regions:
        yield Section("applied", "The relinked kernel", (_applied(report.applied),))


def _methods(report: PlaceReport) -> Table:
    columns = (Column("method", "name"), Column("misses cost", "number"), Column(""))
    rows = [
        (Cell(method), Cell(_cost(cost), cost), Cell("taken" if method == report.method else ""))
        for method, cost in report.costs.items()
    ]
    rows += [
        (Cell(name), Cell(_cost(cost), cost), Cell(""))
        for name, cost in (("random, median", report.median), ("random, best", report.best))
    ]
    caption = (
        "What misses cost, if none is hidden, of what the instructions cost; mean of the "
        f"operations by weight; {words.number(report.evaluations)} orders were judged"
    )
    return Table("methods-table", caption, columns, tuple(rows))


def _cycles(report: PlaceReport) -> Table:
    columns = (
        Column("operation", "name"),
        Column("weight", "number"),
        Column("shipped", "number"),
        Column("in the order", "number"),
    )
    rows = tuple(
        (
            Cell(one.name),
            Cell(f"{one.weight:.3g}", one.weight),
            Cell(words.ends(one.shipped.low, one.shipped.high), one.shipped.high),
            Cell(words.ends(one.predicted.low, one.predicted.high), one.predicted.high),
        )
        for one in report.regions
    )
    caption = (
        f"Model cycles an iteration on {report.cpu.name}, from the lowest prices to the highest"
    )
    return Table("ops", caption, columns, rows, filtered=True)


def _any(found: PlacedMisses) -> bool:
    return bool(found.shipped or found.predicted or found.median)


def _kind_section(kind: str, report: PlaceReport) -> Section:
    title = KINDS.get(kind, f"{kind} misses")
    columns = (
        Column("operation", "name"),
        Column("shipped", "number"),
        Column("median", "number", "of the random layouts"),
        Column("best", "number", "of the random layouts"),
        Column("order", "number", "as predicted"),
        Column("no sets", "number", "of the order, if lines could lie anywhere in the cache"),
        Column("bound", "number", "no order has less"),
    )
    held = [(one.name, one.misses[kind]) for one in report.regions if kind in one.misses]
    rows = tuple(
        (
            Cell(name),
            *(
                Cell("" if value is None else words.number(round(value, 2)), value or 0.0)
                for value in (
                    found.shipped,
                    found.median,
                    found.best,
                    found.predicted,
                    found.associative,
                    found.bound,
                )
            ),
        )
        for name, found in held
        if _any(found)
    )
    quiet = [name for name, found in held if not _any(found)]
    blocks: list[Block] = []
    if rows:
        blocks.append(Table(f"misses-{kind}", f"{title} an iteration", columns, rows))
    if quiet:
        blocks.append(Prose(f"None, nor in half of the layouts: {', '.join(quiet)}."))
    return Section(f"kind-{kind}", title, tuple(blocks))


def _applied(found: Applied) -> Table:
    columns = (
        Column("operation", "name"),
        *(Column(title, "number")
          for title in ("shipped", "median", "best", "predicted", "measured", "path")),
        Column("as predicted", "word"),
    )  # fmt: skip
    rows = tuple(
        (
            Cell(one.name),
            *(
                Cell(words.number(round(value, 2)), value)
                for value in (one.shipped, one.median, one.best, one.predicted, one.measured)
            ),
            Cell(words.signed(round(one.path, 2)), one.path),
            Cell("yes" if one.is_as_predicted else "no",
                 tone="faster" if one.is_as_predicted else "unresolved"),
        )
        for one in found.regions
    )  # fmt: skip
    caption = (
        "L1I misses an iteration: shipped and measured were counted while the kernels ran; path: "
        "instructions an iteration that the relinked one executes more"
    )
    return Table("applied-table", caption, columns, rows, filtered=True)
