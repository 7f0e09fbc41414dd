# SPDX-License-Identifier: GPL-2.0-or-later
"""The document of two kernels that were timed on a machine."""

from collections.abc import Iterator
from fractions import Fraction

from kdelta.measures import sections as measures
from kdelta.report import cells, words
from kdelta.report import parts as common
from kdelta.report.document import Cell, Column, Document, Section, Table
from kdelta.report.stored import Stored
from kdelta.studies.clock.model import ClockReport, TimedKernel

_COUNTED = (
    "nanoseconds an iteration by the clock: of a run the median over batches, of a boot that over "
    "its runs, of a pair the difference; a machine counts what the builds' layouts do, too"
)


def document(stored: Stored, report: ClockReport) -> Document:
    """Return the document of timed kernels."""
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
