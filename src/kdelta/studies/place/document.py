# SPDX-License-Identifier: GPL-2.0-or-later
"""The document of a search for a better order of functions."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from kdelta.cpus.misses import PLURALS
from kdelta.measures.cycles.cut import cut_note
from kdelta.measures.cycles.words import cpu_line
from kdelta.report import cells, figures, words
from kdelta.report import effects as measures
from kdelta.report import parts as common
from kdelta.report.document import (
    Answer,
    Block,
    Case,
    Cell,
    Column,
    Document,
    Items,
    Outcome,
    Prose,
    Section,
    Suite,
    Table,
)
from kdelta.report.model import KernelRuns
from kdelta.report.names import kernel_name
from kdelta.report.stored import Stored
from kdelta.studies.place.model import (
    Applied,
    AppliedRegion,
    PlacedMisses,
    PlacedRegion,
    PlaceReport,
)

_SHIPPED = "shipped"


def place_document(stored: Stored, report: PlaceReport) -> Document:
    """Return the document of an order."""
    sides = [("kernel", report.kernel)]
    warnings = report.warnings
    if report.applied:
        sides.append(("relinked", report.applied.kernel))
        warnings += report.applied.warnings
    name = kernel_name(report.kernel.spec, report.kernel.release)
    return Document(
        title=f"{', '.join(report.workloads)}: an order for {name}",
        made=common.made_of(stored),
        answers=tuple(_answers(report)),
        facts=(
            ("kernel", common.kernel_fact(report.kernel)),
            ("workload", ", ".join(report.workloads)),
            ("CPU", cpu_line(report.cpu)),
            ("caches", "; ".join(report.caches)),
            ("order", _order(report)),
            ("layouts", f"{report.layouts} random orders, seed {report.seed}"),
        ),
        sections=(
            *_sections(report),
            *common.unlike_section(report.cpu.name, report.mismatches),
        ),
        environment=common.environment(stored, report.machine, sides),
        suites=tuple(_suites(report, sides)),
        failures=common.failures(sides),
        notes=(
            *report.notes,
            *(report.applied.notes if report.applied else ()),
            *map(cut_note, report.cut),
        ),
        warnings=warnings,
    )


def _suites(report: PlaceReport, sides: Sequence[tuple[str, KernelRuns]]) -> Iterator[Suite]:
    """What has more misses than as linked is slower."""
    yield common.kernels_suite(sides)
    yield Suite(f"predicted on {report.cpu.name}", tuple(map(_predicted, report.regions)))
    if report.applied and report.applied.regions:
        yield Suite(
            "measured on the relinked kernel", tuple(map(_measured, report.applied.regions))
        )
        yield from map(measures.suite, report.applied.measured)


def _predicted(region: PlacedRegion) -> Case:
    lines = tuple(
        f"{kind} misses {_count(one.as_linked)} -> {_count(one.predicted)}"
        for kind, one in region.misses.items()
    )
    pays = any(one.pays for one in region.misses.values())
    text = "more misses than as linked" if pays else "no more misses than as linked"
    return Case(region.name, Outcome.SLOWER if pays else Outcome.OK, text, lines)


def _measured(region: AppliedRegion) -> Case:
    text = f"L1I misses {_count(region.as_linked)} -> {_count(region.measured)}"
    outcome = Outcome.SLOWER if region.pays else Outcome.OK
    return Case(region.name, outcome, text, (f"predicted {_count(region.predicted)}",))


def _count(value: float) -> str:
    return figures.fitted(Fraction(value))


def _order(report: PlaceReport) -> str:
    if not report.file:
        return "none is better than the layout as linked" if report.regions else "none"
    filling = f", {report.padding} of them only to fill" if report.padding else ""
    return f"{report.file}: {report.functions} names{filling}, method {report.method}"


def _cost(value: float) -> str:
    return f"{100 * value:.2f} %"


def _answers(report: PlaceReport) -> Iterator[Answer]:
    if not report.regions:
        yield Answer(("Nothing is known: no operation ran.",), tone="unresolved")
        return
    random = f"half of the random orders {_cost(report.median)}, the best {_cost(report.best)}"
    cost = report.costs.get(_SHIPPED)
    as_linked = f"as linked they cost {_cost(cost)}, " if cost is not None else ""
    if report.file:
        text = (
            f"With this order, misses cost {_cost(report.costs[report.method])} of what the "
            f"instructions do, if none is hidden; {as_linked}{random}."
        )
        if payers := report.payers():
            count = words.counted(len(payers), "operation pays", "operations pay")
            names = words.listed([one.name for one in payers[:3]])
            text += f" {count} for it: {names}{'.' if len(payers) <= 3 else ' and others.'}"
        yield Answer((text,), tone="faster")
    else:
        yield Answer((f"No order is better than the layout as linked; {random}.",), tone="same")
    if report.applied and report.applied.regions:
        found = report.applied
        total, was = found.total("measured"), found.total("as_linked")
        part = f" ({figures.percent(Fraction(100 * (total - was) / was))})" if was else ""
        text = (
            f"Relinked in this order, the kernel was measured: {round(total)} L1I "
            f"misses of a whole run against {round(was)} as linked{part}."
        )
        right = sum(one.is_as_predicted for one in found.regions)
        text += f" {right} of {words.counted(len(found.regions), 'operation')} are as predicted."
        yield Answer((text,), about="measured", tone="faster" if total < was else "slower")
        yield from (measures.answer(one, "relinked") for one in found.measured if one.effects)


def _sections(report: PlaceReport) -> Iterator[Section]:
    if not report.regions:
        return
    yield Section("methods", "Methods", (_methods(report),))
    yield Section("operations", "Operations", (_cycles(report),))
    for kind in dict.fromkeys(kind for one in report.regions for kind in one.misses):
        yield _kind_section(kind, report)
    yield Section("payers", "Who pays for it", tuple(_payers(report)))
    if report.applied and report.applied.regions:
        blocks = _applied(report.applied), *_sums(report.applied), *_off(report.applied)
        yield Section("applied", "The relinked kernel", blocks)
        for one in report.applied.measured:
            title = f"By {one.measure}, from the kernel as linked to the relinked one"
            yield measures.section(one, title, who=("as linked", "relinked"))


def _payers(report: PlaceReport) -> Iterator[Block]:
    """Who has more misses than as linked, or that none has."""
    payers = report.payers()
    if not payers:
        yield Prose("No operation has more misses of any kind than as linked.")
        return
    yield Prose("Misses an iteration more than as linked:")
    yield Items(tuple(f"{one.name}: {_paid(one)}" for one in payers))


def _paid(region: PlacedRegion) -> str:
    return ", ".join(
        f"{_count(found.pays)} {PLURALS.get(kind, kind)}"
        for kind, found in region.misses.items()
        if found.pays
    )


def _methods(report: PlaceReport) -> Table:
    columns = (Column("method", "name"), Column("misses cost", "number"), Column(""))
    random = {"random, median": report.median, "random, best": report.best}
    rows = tuple(
        (
            Cell("as linked" if method == _SHIPPED else method),
            Cell(_cost(cost), cost),
            Cell("taken" if method == report.method else ""),
        )
        for method, cost in (report.costs | random).items()
    )
    caption = (
        "What misses cost, if none is hidden, of what the instructions cost; mean of the "
        f"operations by weight; {report.evaluations} orders were judged"
    )
    return Table("methods-table", caption, columns, rows)


def _cycles(report: PlaceReport) -> Table:
    columns = (
        Column("operation", "name"),
        *(Column(title, "number") for title in ("weight", "as linked", "in the order")),
    )
    rows = tuple(
        (
            Cell(one.name),
            Cell(f"{one.weight:.3g}", one.weight),
            cells.ends(one.as_linked),
            cells.ends(one.predicted),
        )
        for one in report.regions
    )
    caption = (
        f"Model cycles an iteration on {report.cpu.name}, from the lowest prices to the highest"
    )
    return Table("ops", caption, columns, rows, filtered=True)


def _any(found: PlacedMisses) -> bool:
    return bool(found.as_linked or found.predicted or found.median)


def _kind_section(kind: str, report: PlaceReport) -> Section:
    title = PLURALS.get(kind, f"{kind} misses")
    columns = (
        Column("operation", "name"),
        Column("as linked", "number"),
        Column("median", "number", "of the random layouts"),
        Column("best", "number", "of the random layouts"),
        Column("order", "number", "as predicted"),
        Column("no sets", "number", "of the order, if lines could lie anywhere in the cache"),
    )
    held = [(one.name, one.misses[kind]) for one in report.regions if kind in one.misses]
    rows = tuple(
        (
            Cell(name),
            *(
                Cell("?") if value is None else cells.number(value)
                for value in (
                    found.as_linked,
                    found.median,
                    found.best,
                    found.predicted,
                    found.associative,
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
          for title in ("as linked", "median", "best", "predicted", "measured", "path")),
        Column("as predicted", "word"),
    )  # fmt: skip
    rows = tuple(
        (
            Cell(one.name),
            *(
                cells.number(value)
                for value in (one.as_linked, one.median, one.best, one.predicted, one.measured)
            ),
            cells.signed(one.path),
            Cell("yes" if one.is_as_predicted else "no",
                 tone="faster" if one.is_as_predicted else "unresolved"),
        )
        for one in found.regions
    )  # fmt: skip
    total = (
        Cell("all iterations together"),
        *(
            cells.number(round(found.total(column)))
            for column in ("as_linked", "median", "best", "predicted", "measured")
        ),
        cells.NOTHING,
        cells.NOTHING,
    )
    caption = (
        "L1I misses an iteration: as linked and measured were counted while the kernels ran; path: "
        "instructions an iteration that the relinked one executes more"
    )
    return Table("applied-table", caption, columns, rows, foot=(total,), filtered=True)


def _sums(found: Applied) -> Iterator[Block]:
    """How the measured order compares with the layout as linked and the median, and who pays."""
    measured = found.total("measured")
    for word, column in (("as linked", "as_linked"), ("the median", "median")):
        before = found.total(column)
        if before and measured:
            yield Prose(f"{before / measured:.2f} times fewer than {word}, all together.")
    missing = [one for one in found.regions if one.median > 0]
    halved = ", ".join(one.name for one in missing if one.is_halved)
    yield Prose(
        f"Of {words.counted(len(missing), 'operation')} with misses in the median layout, these "
        f"have at most half of them: {halved or 'none'}."
    )
    payers = tuple(f"{one.name}: {_count(one.pays)}" for one in found.regions if one.pays)
    if payers:
        yield Prose("Measured L1I misses an iteration more than as linked:")
        yield Items(payers)
    else:
        yield Prose("Measured, no operation has more L1I misses than as linked.")


def _off(found: Applied) -> Iterator[Block]:
    """Whose prediction was off, or that none was."""
    off = tuple(
        f"{one.name}: {_count(one.predicted)} predicted, {_count(one.measured)} measured"
        for one in found.regions
        if not one.is_as_predicted
    )
    if off:
        yield Prose("Predictions off by over 1 % and over 50 misses, all iterations together:")
        yield Items(off)
    else:
        yield Prose("Every prediction is within 1 % or 50 misses of what was measured.")
