# SPDX-License-Identifier: GPL-2.0-or-later
"""The documents of a calibration, and of programs that are compared with its prices."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from kdelta.cpus.misses import MISSES
from kdelta.infer.calibration.model import FittedPrice, ProgramFit
from kdelta.report import parts as common
from kdelta.report.document import Answer, Cell, Column, Document, Section, Table
from kdelta.report.stored import Stored
from kdelta.spec.timings import TimedSpecial
from kdelta.studies.calibrate.model import (
    CalibrationReport,
    CheckedProgram,
    CheckReport,
    unpredictable_ranks,
)

_NAMES = {**{kind: names.label for kind, names in MISSES.items()}, "base": "an instruction"}
_QUALITY = (
    Column("program", "name"),
    Column("n", "number", "links"),
    Column("spread", "number", "of the measured cycles, in per cent of an iteration's"),
    Column("model", "number", "the predicted spread"),
    Column("noise", "number", "of the measured cycles"),
    Column("rank", "number", "correlation of measured and predicted cycles"),
    Column("plain", "number", "the same of measured cycles and plain misses"),
    Column("expl.", "number", "share of the variance that is predicted"),
    Column("only", "word", "whether the spread is no more than noise"),
)


def calibration_document(stored: Stored, report: CalibrationReport) -> Document:
    """Return the document of `kdelta calibrate`."""
    fitted = report.fitted
    none = "No mechanism predicts links of programs that were left out."
    sections = (
        Section("prices", "What a miss costs, in core cycles", tuple(_prices(report))),
        Section("left-out", "Left out of the prices", (_left_out(report),)),
        Section(
            "quality",
            "Each program, predicted by the prices of all others",
            (quality_table(fitted.quality),),
        ),
        Section("specials", "What special instructions cost", (_specials(report.specials),)),
    )
    written = ("written", f"{report.written}; use it with --cpu host")
    sentences = (*(() if fitted.prices else (none,)), *_sentences(fitted.quality))
    return _document(stored, report, sentences, (written,) if report.written else (), sections)


def check_document(stored: Stored, report: CheckReport) -> Document:
    """Return the document of `kdelta calibrate --check`."""
    quality = [one.fit for one in report.programs]
    sections = (
        Section(
            "quality",
            f"Each program, predicted by the prices of {report.cpu}",
            (quality_table(quality),),
        ),
        Section("worst", "Links that fit worst", (_worst(report.programs),)),
    )
    return _document(stored, report, tuple(_sentences(quality)), (), sections)


def _document(
    stored: Stored,
    report: CalibrationReport | CheckReport,
    sentences: tuple[str, ...],
    facts: tuple[tuple[str, str], ...],
    sections: tuple[Section, ...],
) -> Document:
    machine, quiet = report.machine, report.quiet
    name = f"{machine.cpu}{', a virtual machine' if machine.hypervisor else ''}"
    clock = (
        f"{'quiet' if quiet.ok else 'not quiet'}: other programs {quiet.other_share:.1%} of the "
        f"core, steal {quiet.steal_share:.1%}, dropped {quiet.dropped_share:.1%} of repetitions; "
        f"{quiet.seconds:.0f} s"
    )
    measured = (
        ("machine", f"{name}; {machine.cores} cores, clock {machine.clock}"),
        ("clock", clock),
    )
    return Document(
        title=stored.question,
        made=common.made_of(stored),
        answers=(Answer(sentences),),
        facts=(("geometry", f"{report.cpu}; traced under {report.kernel}"), *facts),
        sections=sections,
        environment=common.last_sections(stored, measured, ()),
        notes=report.notes,
        warnings=quiet.said,
    )


def _sentences(quality: Sequence[ProgramFit]) -> Iterator[str]:
    """How well prices predict programs, in words."""
    ranks = unpredictable_ranks(quality)
    if ranks:
        yield (
            f"Unpredictable flow: the rank correlation of measured and predicted cycles is at "
            f"least {min(ranks):.2f}, median {np.median(ranks):.2f}, over {len(ranks)} programs "
            "whose spread is above the noise."
        )
    apart = [
        abs(one.spread - one.predicted_spread) / one.cycles
        for one in quality
        if one.predictable and one.cycles > 0
    ]
    if apart:
        yield (
            f"Predictable flow: the predicted spread differs from the measured one by at most "
            f"{max(apart):.2%} of an iteration, over {len(apart)} programs."
        )
    if not ranks and not apart:
        yield "No program's links differ by more than the noise."


def _prices(report: CalibrationReport) -> Iterator[Table]:
    fitted = report.fitted
    rows = _price_rows(fitted.prices, {one.name: f"{one.gain:.0%}" for one in fitted.contributions})
    if fitted.base_rate:
        rows += _price_rows({"base": fitted.base_rate}, {})
    columns = (
        Column("price of", "name"),
        Column("cycles", "number"),
        Column("interval"),
        Column("n", "number", "programs whose links differ in it"),
        Column("helps by", "number", "by which share errors are less with it"),
    )
    yield Table("prices-table", "From differences between links", columns, rows)
    yield Table(
        "between-table", "From differences between programs, not between links",
        columns[:-1], tuple(row[:-1] for row in _price_rows(fitted.between, {})),
    )  # fmt: skip


def _price_rows(
    prices: Mapping[str, FittedPrice], gains: Mapping[str, str]
) -> tuple[tuple[Cell, ...], ...]:
    return tuple(
        (
            Cell(_NAMES.get(name, name)),
            Cell(f"{price.value:.2f}", price.value),
            Cell(f"{price.low:.2f} to {price.high:.2f}"),
            Cell(str(price.programs), price.programs),
            Cell(gains.get(name, "")),
        )
        for name, price in prices.items()
    )


def _left_out(report: CalibrationReport) -> Table:
    columns = (Column("price of", "name"), Column("would help by", "number"), Column("why"))
    rows = tuple(
        (Cell(_NAMES.get(one.name, one.name)), Cell(f"{one.gain:.1%}", one.gain), Cell(one.why))
        for one in report.fitted.left_out
    )
    return Table("left-out-table", "By how much they would help", columns, rows)


def quality_table(quality: Sequence[ProgramFit]) -> Table:
    """Return a row for each program: how its links differ as measured and as predicted."""

    def row(one: ProgramFit) -> Iterator[Cell]:
        yield Cell(one.name)
        yield Cell(str(one.links), one.links)
        for cycles in (one.spread, one.predicted_spread, one.noise):
            yield _figure(cycles / one.cycles if one.cycles > 0 else None, ".2%")
        yield _figure(one.rank, ".2f")
        yield _figure(one.plain_rank, ".2f")
        yield _figure(one.explained, ".0%")
        yield Cell("" if one.above_noise else "noise")

    return Table(
        "quality-table", "How links differ", _QUALITY, tuple(tuple(row(one)) for one in quality)
    )


def _figure(value: float | None, spec: str) -> Cell:
    return Cell("-") if value is None else Cell(format(value, spec), value)


def _specials(specials: Sequence[TimedSpecial]) -> Table:
    columns = (
        Column("special instruction", "name"),
        Column("cycles", "number", "the median"),
        Column("least", "number"),
        Column("most of", "number"),
    )
    rows = tuple(
        (
            Cell(f"{one.kind} {one.argument}" if one.argument else one.kind),
            *(
                Cell(f"{cycles:.1f}", cycles)
                for cycles in (one.cycles_median, one.cycles_low, one.cycles_high)
            ),
        )
        for one in specials
    )
    return Table("specials-table", "By the clock", columns, rows)


def _worst(programs: Sequence[CheckedProgram]) -> Table:
    columns = (
        Column("program", "name"),
        Column("seed", "number"),
        Column("measured", "number", "cycles beyond the program's median"),
        Column("predicted", "number"),
        Column("events", note="beyond the mean of the links"),
        Column("functions", note="whose misses differ most"),
    )
    rows = tuple(
        (
            Cell(program.fit.name),
            Cell(str(link.seed), link.seed),
            Cell(f"{link.measured:+.0f}", link.measured),
            Cell(f"{link.predicted:+.0f}", link.predicted),
            Cell(_counts(link.events)),
            Cell(_counts(link.functions)),
        )
        for program in programs
        for link in program.worst
    )
    return Table("worst-table", "Cycles, measured and predicted", columns, rows)


def _counts(counts: Sequence[tuple[str, float]]) -> str:
    return ", ".join(f"{name} {count:+.0f}" for name, count in counts)
