# SPDX-License-Identifier: GPL-2.0-or-later
"""The document of two kernels that were timed on a machine."""

import math
import statistics
from collections.abc import Iterator
from fractions import Fraction

from kdelta.report import cells, words
from kdelta.report import effects as measures
from kdelta.report import parts as common
from kdelta.report.document import Answer, Cell, Column, Document, Section, Table
from kdelta.report.stored import Stored
from kdelta.studies.clock.model import ClockReport, TimedKernel

_COUNTED = (
    "nanoseconds an iteration by the clock: of a run the median over batches, of a boot that over "
    "its runs, of a pair the difference; a machine counts what the builds' layouts do, too"
)


_FLOOR_COUNTED = (
    "nanoseconds an iteration by the clock: of a run the median over batches; a pair is two runs "
    "of the same program, in an order that is drawn"
)


def clock_document(stored: Stored, report: ClockReport) -> Document:
    """Return the document of timed kernels, or of the floor of a machine."""
    if report.floor:
        return _floor_document(stored, report)
    found = report.found
    about = f"{report.other.release} against {report.base.release}"
    of = words.counted(report.pairs, "pair of boots", "pairs of boots")
    return Document(
        title=f"{report.workload}: {about}, timed, {of}",
        made=common.made_of(stored),
        answers=(measures.answer(found, about),),
        facts=(
            ("base", _kernel(report.base)),
            ("other", _kernel(report.other)),
            ("workload", report.workload),
            ("machine", report.machine["cpu_model"]),
            ("pairs", f"{report.pairs}, in the order of time"),
            ("measured", _COUNTED),
        ),
        sections=(
            measures.section(found, "Effects on time"),
            *_instructions(report),
        ),
        environment=common.last_sections(stored, tuple(_machine(report)), ()),
        suites=(measures.suite(found),),
        notes=(*found.notes, *report.notes),
        warnings=report.warnings,
    )


def _floor_document(stored: Stored, report: ClockReport) -> Document:
    of = words.counted(report.pairs, "pair of runs", "pairs of runs")
    return Document(
        title=f"{report.workload}: floor of this machine under {report.base.release}, {of}",
        made=common.made_of(stored),
        answers=(Answer((_floor_text(report),)),),
        facts=(
            ("kernel", _kernel(report.base)),
            ("workload", report.workload),
            ("machine", report.machine["cpu_model"]),
            ("pairs", f"{report.pairs}, each in an order that was drawn"),
            ("measured", _FLOOR_COUNTED),
        ),
        sections=(Section("floor", "The floor by operation", (_floor_table(report),)),),
        environment=common.last_sections(stored, tuple(_machine(report)), ()),
        suites=(measures.suite(report.found),),
        notes=report.notes,
        warnings=report.warnings,
    )


def _floor_text(report: ClockReport) -> str:
    known = [one for one in report.floor if math.isfinite(one.half_width)]
    if not known:
        return "The floor is not known: the times changed while they were measured."
    known.sort(key=lambda one: one.half_width)
    lost = len(report.floor) - len(known)
    unknown = f"; of {words.counted(lost, 'operation')} it is not known" if lost else ""
    middle, worst = statistics.median(one.half_width for one in known), known[-1]
    return (
        f"{words.counted(report.pairs, 'pair')} of runs of one kernel leave a difference of "
        f"{_percent(middle)} open in the median operation, and of {_percent(worst.half_width)} in "
        f"{worst.region}, the worst of {len(known)}{unknown}."
    )


def _floor_table(report: ClockReport) -> Table:
    columns = (
        Column("operation", "name"),
        Column("time", "number", "nanoseconds an iteration, the median over all runs"),
        Column("floor", "number", "half the width of the interval of a difference of zero"),
        Column("least margin", "number", "within which as many pairs show that times are the same"),
        Column("times", "word", "the verdict on the pairs, of which both sides are the same"),
        Column("why"),
    )
    rows = tuple(
        (
            Cell(one.region),
            cells.number(one.ns),
            Cell(_percent(one.half_width), one.half_width),
            Cell(_percent(one.margin), one.margin),
            cells.verdict(effect.word),
            Cell(effect.reason),
        )
        for one, effect in zip(report.floor, report.found.effects, strict=True)
    )
    caption = f"What {report.pairs} pairs of runs under one kernel leave open"
    return Table("floor-table", caption, columns, rows, filtered=True)


def _percent(part: float) -> str:
    return f"{100 * part:.2g} %" if math.isfinite(part) else "?"


def _machine(report: ClockReport) -> Iterator[tuple[str, str]]:
    for name, text in report.machine.items():
        if text:
            yield name.replace("_", " "), text


def _kernel(one: TimedKernel) -> str:
    boots = words.counted(one.boots, "boot")
    runs = words.counted(one.runs, "run")
    build = f", build ID {one.build_id[:12]}" if one.build_id else ""
    return f"{one.release}{build}, {boots}, {runs}; booted with {one.command_line}"


def _instructions(report: ClockReport) -> Iterator[Section]:
    """What the machine's counters say of the paths."""
    if not report.instructions:
        return
    columns = (
        Column("operation", "name"),
        *(Column(name, "number", "instructions") for name in ("base", "other", "diff")),
    )
    rows = tuple(
        (Cell(name), *cells.between(Fraction(base), Fraction(other)))
        for name, (base, other) in report.instructions.items()
    )
    caption = "Retired instructions an iteration, as the machine counts them"
    table = Table("instructions-table", caption, columns, rows)
    yield Section("instructions", "Instructions by the machine's counters", (table,))
