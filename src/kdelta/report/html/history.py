# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of a history: how figures moved from kernel to kernel, with their steps marked."""

from collections import Counter
from collections.abc import Iterator, Sequence

from kdelta.infer.effects import Word
from kdelta.report.cycles import cpu_line
from kdelta.report.history_model import (
    NOTABLE,
    REAL,
    HistoryPoint,
    HistoryReport,
    HistorySeries,
    HistoryTotal,
    HistoryTrack,
)
from kdelta.report.history_text import history_text, kernel_words, moved_most
from kdelta.report.html import common, words
from kdelta.report.html.history_chart import Mark, history_svg
from kdelta.report.html.model import (
    Answer,
    Block,
    Cell,
    Chart,
    Chip,
    Column,
    Document,
    Facts,
    Fold,
    Items,
    Prose,
    Section,
    Table,
    Verbatim,
)
from kdelta.report.stored import Stored

_NAMED = 3
_ROOM = 14


def document(stored: Stored, report: HistoryReport) -> Document:
    """The page of a workload's history."""
    several = len(report.series) > 1
    return Document(
        title="kdelta log",
        question=stored.question,
        answers=tuple(
            _answer(series, f"series {number}" if several else "")
            for number, series in enumerate(report.series, start=1)
        ),
        facts=(
            ("workload", report.workload),
            ("operations", ", ".join(report.operations) or "all"),
        ),
        sections=(
            *(
                section
                for number, series in enumerate(report.series, start=1)
                for section in _sections(series, number if several else 0, report)
            ),
            *common.notes(
                [
                    ("Of the series", [note for one in report.series for note in one.notes]),
                    ("Not shown", report.left_out),
                    ("Warnings", report.warnings),
                ]
            ),
            _environment(stored, report),
            common.as_text(history_text(report, stored.shown.get("explain", 8))),
        ),
    )


def _answer(series: HistorySeries, about: str) -> Answer:
    found = Counter(
        Word(word) for total in series.totals for word, n in total.words.items() for _ in range(n)
    )
    moved = moved_most(series)
    level = words.fraction(series.totals[-1].level / 100 - 1)
    text = (
        f"From {series.kernels[0].name} to {series.kernels[-1].name}, over "
        f"{words.counted(len(series.kernels), 'kernel')}, the path changed by {level} in the "
        "geometric mean."
    )
    if moved:
        named = [f"{track.operation} ({words.percent(part)})" for track, part, _ in moved[:_NAMED]]
        text += f" Most: {words.listed(named)}."
    else:
        text += " No operation has a real step."
    chips = tuple(Chip(word, found[word], words.TONES[word]) for word in NOTABLE if found[word])
    return Answer((text,), chips, about, words.tone_of(found))


def _sections(series: HistorySeries, number: int, report: HistoryReport) -> Iterator[Section]:
    mark = f"-{number}" if number else ""
    title = f"Series {number}: " if number else ""
    blocks: list[Block] = []
    if not report.operations:
        blocks.append(_chart_of_all(series))
        blocks.append(_table_of_all(series, mark))
    tracks = series.tracks
    if not report.operations:
        tracks = tuple(track for track, _, _ in moved_most(series))
    for at, track in enumerate(tracks):
        inner: tuple[Block, ...] = (_chart(track, series), _table(track, series, f"{mark}-{at}"))
        blocks += [Fold(track.operation, inner)] if not report.operations else inner
    listed = enumerate(series.kernels, start=1)
    kernels = Items(tuple(f"{at} {kernel_words(one)}" for at, one in listed))
    lead = Prose(
        f"Kernels by {series.ordered or 'version'}; a point is coloured by the step to it: a real "
        "one, placement only, or open."
    )
    yield Section(f"history{mark}", f"{title}From kernel to kernel", (lead, kernels, *blocks))


def _names(series: HistorySeries) -> list[str]:
    """Names that are unique, by their numbers."""
    return [f"{at} {one.name}" for at, one in enumerate(series.kernels, start=1)]


def _row_names(series: HistorySeries) -> list[str]:
    """The same for a chart, where there is little room."""
    return [name if len(name) <= _ROOM else f"{name[:_ROOM]}..." for name in _names(series)]


def _chart_of_all(series: HistorySeries) -> Chart:
    marks = [
        Mark(name, total.level, total.level, total.level, words.TONES[_word(total)])
        for name, total in zip(_row_names(series), series.totals, strict=True)
    ]
    said = ", ".join(f"{one.name}: {one.value:.2f}" for one in marks)
    caption = "All operations: geometric mean of the instructions, the first kernel is 100"
    return Chart(history_svg(marks, "level"), caption, f"{caption}. {said}", wide=True)


def _word(total: HistoryTotal) -> Word:
    """Of real steps the word is that of all of them together."""
    if total.change and any(total.words.get(word) for word in REAL):
        return Word.SLOWER if total.change.value > 1 else Word.FASTER
    return next((word for word in NOTABLE if total.words.get(word)), Word.SAME)


def _table_of_all(series: HistorySeries, mark: str) -> Table:
    columns = (
        Column("kernel", "name"),
        Column("level", "number", "the first kernel is 100"),
        Column("change", "number", "from the kernel before"),
        *(Column(str(word), "number", "operations with such a step") for word in NOTABLE),
    )
    rows = tuple(
        (
            Cell(name),
            Cell(f"{total.level:.2f}", total.level),
            _change(total),
            *(Cell(str(total.words.get(word, 0)), total.words.get(word, 0)) for word in NOTABLE),
        )
        for name, total in zip(_names(series), series.totals, strict=True)
    )
    return Table(f"all{mark}", "All operations together", columns, rows)


def _change(total: HistoryTotal) -> Cell:
    if total.change is None:
        return Cell("")
    return Cell(words.fraction(total.change.value - 1), total.change.value)


def _chart(track: HistoryTrack, series: HistorySeries) -> Chart:
    marks = [
        Mark(
            name,
            float(point.figure.value),
            float(point.figure.low),
            float(point.figure.high),
            words.TONES[point.step.word if point.step else Word.SAME],
        )
        for name, point in zip(_row_names(series), track.points, strict=True)
        if point.figure
    ]
    said = ", ".join(f"{one.name}: {one.value:.6g}" for one in marks)
    caption = f"{track.operation}: instructions an iteration"
    return Chart(history_svg(marks, "instructions"), caption, f"{caption}. {said}", wide=True)


def _table(track: HistoryTrack, series: HistorySeries, mark: str) -> Table:
    columns: tuple[Column, ...] = (
        Column("kernel", "name"),
        Column("instructions", "number", "an iteration"),
        Column("change", "number", "from the kernel before"),
        Column("spread", "text", "of the change"),
        Column("step", "word"),
        Column("why open"),
    )
    if series.cpu:
        columns += (
            Column(f"on {series.cpu.name}", "text", "the verdict on model cycles"),
            Column("over layouts", "text"),
            Column("as shipped", "text"),
        )
    rows = tuple(
        (Cell(name), *_cells(point), *(_cycle_cells(point) if series.cpu else ()))
        for name, point in zip(_names(series), track.points, strict=True)
    )
    return Table(f"track{mark}", f"{track.operation}, kernel by kernel", columns, rows)


def _cells(point: HistoryPoint) -> Sequence[Cell]:
    figure, step = point.figure, point.step
    value = Cell("") if figure is None else Cell(words.number(figure.value), float(figure.value))
    if step is None:
        return (value, Cell(""), Cell(""), Cell(""), Cell(""))
    part = float(step.percent) if step.percent is not None else None
    return (
        value,
        Cell(words.percent(step.percent), part),
        Cell(words.spread(step.effect)),
        Cell(step.word, tone=step.word),
        Cell(step.reason),
    )


def _cycle_cells(point: HistoryPoint) -> Sequence[Cell]:
    found = point.cycles
    if found is None:
        return (Cell(""), Cell(""), Cell(""))
    return (
        Cell(found.word, tone=found.word),
        Cell(words.interval(found.relative)),
        Cell(words.interval(found.shipped)),
    )


def _environment(stored: Stored, report: HistoryReport) -> Section:
    facts: list[tuple[str, str]] = []
    for number, series in enumerate(report.series, start=1):
        of = f" of series {number}" if len(report.series) > 1 else ""
        facts += [(f"{name}{of}", text) for name, text in common.machine_facts(series.machine)]
        if series.cpu:
            facts.append((f"priced{of}", cpu_line(series.cpu)))
    facts.append(("made", f"{stored.started_text} UTC by kdelta {stored.version}"))
    specs = [
        f"{kernel.name}: {kernel.spec}; identity {kernel.identity}; runs {' '.join(kernel.runs)}"
        for series in report.series
        for kernel in series.kernels
    ]
    blocks: tuple[Block, ...] = (
        Prose("Nothing is run for it: it is made of what the store has."),
        Verbatim(stored.command),
        Facts(tuple(facts)),
        Fold(words.counted(len(specs), "kernel"), (Items(tuple(specs)),)),
    )
    return Section("environment", "Environment, and how to make it again", blocks)
