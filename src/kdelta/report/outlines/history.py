# SPDX-License-Identifier: GPL-2.0-or-later
"""The outline of a history: the cases are the steps to the last kernel."""

from collections.abc import Iterator
from fractions import Fraction

from kdelta.infer.effects import OPEN, Word
from kdelta.infer.estimate import Estimate
from kdelta.report import figures
from kdelta.report.cycles import cpu_line, in_per_cent
from kdelta.report.history_model import (
    NOTABLE,
    HistoryReport,
    HistorySeries,
    HistoryTrack,
    PathStep,
)
from kdelta.report.history_text import kernel_words, moved_most
from kdelta.report.outline import Case, Outcome, Outline, Suite, Table
from kdelta.report.outlines import parts
from kdelta.report.outlines.compare import OUTCOMES
from kdelta.report.stored import Stored
from kdelta.report.text import COUNTED


def history_outline(stored: Stored) -> Outline:
    """The outline of a history, a part for each series."""
    report = stored.one(HistoryReport)
    what = f"{report.workload} {', '.join(report.operations)}".strip()
    counts = [len(one.kernels) for one in report.series]
    kernels = " and ".join(parts.counted(count, "kernel") for count in counts)
    return Outline(
        subject=f"{what}: how it moved over {kernels}",
        short=tuple(_short(report, number) for number in range(len(report.series))),
        suites=tuple(_suite(report, number) for number in range(len(report.series))),
        tables=tuple(
            table for number in range(len(report.series)) for table in _tables(report, number)
        ),
        facts=tuple(_facts(report)),
        notes=(
            *(note for one in report.series for note in one.notes),
            *(f"not shown: {text}" for text in report.left_out),
        ),
        warnings=report.warnings,
    )


def _title(report: HistoryReport, number: int) -> str:
    return f"series {number + 1}: " if len(report.series) > 1 else ""


def _short(report: HistoryReport, number: int) -> str:
    series = report.series[number]
    first, last = series.kernels[0].name, series.kernels[-1].name
    total = figures.percent(Fraction(series.totals[-1].level - 100))
    named = [
        f"{track.operation} {figures.percent(part)}"
        for track, part, _ in moved_most(series)[: parts.NAMED]
    ]
    moved = f"; moved most: {', '.join(named)}" if named else "; no operation has a real step"
    text = f"from {first} to {last} ({len(series.kernels)} kernels) the path changed by {total}"
    return f"{_title(report, number)}{text}{moved}."


def _suite(report: HistoryReport, number: int) -> Suite:
    """What changed with the last kernel."""
    series = report.series[number]
    cases = tuple(_case(track, series) for track in series.tracks)
    return Suite(f"{_title(report, number)}the last step", cases)


def _case(track: HistoryTrack, series: HistorySeries) -> Case:
    point = track.points[-1]
    if point.step is None:
        return Case(track.operation, Outcome.UNKNOWN, "nothing to compare it with")
    words = step_words(point.step)
    if point.cycles:
        found = point.cycles
        words += f"; model cycles {found.word} ({in_per_cent(found.relative)})"
    before = track.points[-2].figure
    base, other = (_figure(one) for one in (before, point.figure))
    text = f"{base} -> {other} instructions an iteration, {figures.spread(point.step.effect)}"
    return Case(track.operation, OUTCOMES[point.step.word], words, (text, series.kernels[-1].name))


def step_words(step: PathStep) -> str:
    """A step in words."""
    size = f" ({figures.percent(step.percent)})" if step.word is not Word.SAME else ""
    return f"{step.word}{size}" + (f": {step.reason}" if step.reason else "")


def _figure(figure: Estimate | None) -> str:
    return "-" if figure is None else figures.number(figure.value)


_NOT_TOLD = tuple(word for word in NOTABLE if word in OPEN)


def _tables(report: HistoryReport, number: int) -> Iterator[Table]:
    series = report.series[number]
    title = _title(report, number)
    if not report.operations:
        columns = [(Word.SLOWER,), (Word.FASTER,), (Word.PLACEMENT_ONLY,), _NOT_TOLD]
        yield Table(
            f"{title}all operations",
            ("kernel", "level", "change", "slower", "faster", "placed", "open"),
            tuple(
                (
                    kernel.name,
                    f"{total.level:.2f}",
                    figures.percent(Fraction(100 * (total.change.value - 1)))
                    if total.change
                    else "",
                    *(
                        str(sum(total.words.get(word, 0) for word in words)) if total.change else ""
                        for words in columns
                    ),
                )
                for kernel, total in zip(series.kernels, series.totals, strict=True)
            ),
            note="Geometric mean of instructions an iteration, the first kernel is 100; how many "
            "operations have a real step in the path, placement only, or are open.",
        )
    for track in series.tracks:
        yield _track(track, series, title, folded=not report.operations)


def _track(track: HistoryTrack, series: HistorySeries, title: str, *, folded: bool) -> Table:
    rows = []
    for kernel, point in zip(series.kernels, track.points, strict=True):
        step = point.step
        rows.append(
            (
                kernel.name,
                _figure(point.figure),
                figures.percent(step.percent) if step else "",
                figures.spread(step.effect) if step else "",
                str(step.word) if step else "",
                f"{point.cycles.word} {in_per_cent(point.cycles.relative)}" if point.cycles else "",
            )
        )
    width = 6 if any(row[5] for row in rows) else 5
    heads = ("kernel", "insns", "%", "spread", "step", "model cycles")
    return Table(
        f"{title}{track.operation}, instructions an iteration",
        heads[:width],
        tuple(row[:width] for row in rows),
        folded=folded,
    )


def _facts(report: HistoryReport) -> Iterator[tuple[str, str]]:
    yield "workload", report.workload
    for number, series in enumerate(report.series):
        of = f" of series {number + 1}" if len(report.series) > 1 else ""
        for name, text in parts.lab_facts(series.machine):
            yield f"{name}{of}", text
        if series.cpu:
            yield f"priced{of}", cpu_line(series.cpu)
        yield f"order{of}", f"by {series.ordered}"
        for at, kernel in enumerate(series.kernels, start=1):
            yield f"kernel {at}{of}", f"{kernel_words(kernel)} [{kernel.spec}]"
    yield "counted", COUNTED
