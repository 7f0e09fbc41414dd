# SPDX-License-Identifier: GPL-2.0-or-later
"""The document of counters next to exact counts."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from kdelta.infer.clock.counters import (
    INTERRUPTS,
    MARKS,
    READINGS,
    Attributed,
    CheckedOperation,
)
from kdelta.report import cells, figures, words
from kdelta.report import parts as common
from kdelta.report.document import (
    Answer,
    Case,
    Cell,
    Chip,
    Column,
    Document,
    Facts,
    Outcome,
    Prose,
    Section,
    Suite,
    Table,
)
from kdelta.report.stored import Stored
from kdelta.studies.counters.model import CountersReport

_AGREES, _DIFFERS = "agrees", "differs"
_TONES = {_AGREES: "same", _DIFFERS: "unresolved"}
_COUNTED = (
    "retired instructions of an iteration by the CPU's counters, user and kernel apart; exact: "
    "what kdelta counts of the same kernel, the mean over its runs"
)


def counters_document(stored: Stored, report: CountersReport) -> Document:
    """Return the document of counters next to exact counts."""
    sides = (("kernel", report.kernel),)
    return Document(
        title=f"{report.workload}: counters next to exact counts under {report.kernel.release}",
        made=common.made_of(stored),
        answers=(_answer(report),),
        facts=(
            ("kernel", common.kernel_fact(report.kernel)),
            ("workload", report.workload),
            ("machine", report.machine["cpu_model"]),
            ("runs", f"{report.runs} of the bundle, {len(report.kernel.runs)} exact"),
            ("counted", _COUNTED),
        ),
        sections=tuple(_sections(report)),
        environment=common.environment(stored, report.emulated, sides),
        suites=(
            common.kernels_suite(sides),
            Suite("counters", tuple(map(_case, report.operations))),
        ),
        failures=common.failures(sides),
        notes=report.notes,
        warnings=report.warnings,
    )


def _answer(report: CountersReport) -> Answer:
    agree = sum(one.agrees for one in report.operations)
    counts = {_AGREES: agree, _DIFFERS: len(report.operations) - agree}
    of = words.counted(len(report.operations), "operation")
    text = (
        f"Of {of} {agree} retire as many instructions as kdelta counts, within "
        f"{_percent(report.margin)} and what is known of the difference."
    )
    chips = tuple(Chip(word, count, _TONES[word]) for word, count in counts.items() if count)
    return Answer((text,), chips, tone=_TONES[_DIFFERS if counts[_DIFFERS] else _AGREES])


def _sections(report: CountersReport) -> Iterator[Section]:
    yield Section("counters", "Counters next to exact counts", (_whole_table(report),))
    in_kernel = [(one.region, one.kernel) for one in report.operations if one.kernel]
    if in_kernel:
        table = _side_table("kernel", "Instructions in the kernel", in_kernel, (INTERRUPTS,))
        yield Section("kernel-side", "In the kernel", (table,))
    in_user = [(one.region, one.user) for one in report.operations if one.user]
    if in_user:
        table = _side_table("user", "Instructions in user mode", in_user, (MARKS, READINGS))
        yield Section("user-side", "In user mode", (table,))
    flags = (("Only the machine's CPU has", report.more_flags),
             ("Only the emulated CPU has", report.fewer_flags))  # fmt: skip
    texts = tuple(Prose(f"{what}: {', '.join(of)}.") for what, of in flags if of)
    if texts:
        why = Prose(
            "The kernel takes other instructions for some of them (alternatives, mitigations); "
            "kdelta compare --cpu NAME emulates what a named CPU has."
        )
        yield Section("features", "Features of one CPU alone", (*texts, why))
    facts = tuple((name.replace("_", " "), text) for name, text in report.machine.items() if text)
    yield Section("machine", "The machine", (Facts(facts),), detail=True)


def _whole_table(report: CountersReport) -> Table:
    columns = (
        Column("operation", "name"),
        Column("counted", "number", "instructions of user and kernel that the CPU retired"),
        Column("exact", "number"),
        Column("left", "number", "of their difference, what the tables below do not explain"),
        Column("% left", "number", "of the exact count"),
        Column("spread", "number", "how far the exact runs differ from each other"),
        Column("string", "number", "iterations of string instructions besides the first"),
        Column("counters", "word", "whether what is left is within the margin and the spread"),
        Column("why"),
    )
    rows = tuple(_whole_row(one) for one in report.operations)
    caption = "Instructions an iteration, user and kernel"
    return Table("counters-table", caption, columns, rows, filtered=True)


def _whole_row(one: CheckedOperation) -> tuple[Cell, ...]:
    counted = sum(side.counted for side in (one.user, one.kernel) if side)
    word = _word(one)
    return (
        Cell(one.region),
        cells.number(counted),
        cells.number(one.exact_insns),
        cells.signed(one.left),
        cells.percent(_part(one)),
        cells.number(one.exact.spread),
        cells.number(one.exact.string_iterations),
        Cell(word, one.agrees, _TONES[word]),
        Cell("; ".join(one.why)),
    )


def _side_table(
    mark: str, caption: str, rows: Sequence[tuple[str, Attributed]], parts: Sequence[str]
) -> Table:
    columns = (
        Column("operation", "name"),
        *(Column(name, "number") for name in ("counted", "exact", "diff", *parts, "left")),
    )
    made = tuple(
        (
            Cell(name),
            cells.number(one.counted),
            cells.number(one.exact),
            cells.signed(one.counted - one.exact),
            *(cells.signed(one.parts[part]) if part in one.parts else Cell("?") for part in parts),
            cells.signed(one.left),
        )
        for name, one in rows
    )
    return Table(f"{mark}-table", caption, columns, made, filtered=True)


def _case(one: CheckedOperation) -> Case:
    word, part = _word(one), figures.percent(_part(one))
    reason = f": {'; '.join(one.why)}" if one.why else ""
    return Case(
        one.region, Outcome.OK if one.agrees else Outcome.UNKNOWN, f"{word} ({part}){reason}"
    )


def _word(one: CheckedOperation) -> str:
    return _AGREES if one.agrees else _DIFFERS


def _part(one: CheckedOperation) -> Fraction | None:
    """Return what is left, in per cent of the exact count."""
    exact = one.exact_insns
    return 100 * Fraction(one.left) / Fraction(exact) if exact else None


def _percent(part: float) -> str:
    return f"{100 * part:g} %"
