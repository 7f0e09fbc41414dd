# SPDX-License-Identifier: GPL-2.0-or-later
"""The document of a history: how figures moved from kernel to kernel, with their steps marked."""

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction

from kdelta.infer.effects.effects import Word
from kdelta.measures.cycles.words import cpu_line
from kdelta.measures.forms import form_of
from kdelta.report import cells, figures, words
from kdelta.report import parts as common
from kdelta.report.document import (
    Answer,
    Block,
    Case,
    Cell,
    Chart,
    Chip,
    Column,
    Document,
    Fold,
    Items,
    Outcome,
    Point,
    Prose,
    Section,
    Suite,
    Table,
)
from kdelta.report.lines import machine_facts
from kdelta.report.measured import MODEL_CYCLES
from kdelta.report.stored import Stored
from kdelta.store.model import moment_text
from kdelta.studies.log.model import (
    NOTABLE,
    REAL,
    HistoryKernel,
    HistoryPoint,
    HistoryReport,
    HistorySeries,
    HistoryTotal,
    HistoryTrack,
    PathStep,
)

_NAMED = 3
_ROOM = 14


def log_document(stored: Stored) -> Document:
    """Return the document of a workload's history."""
    report = stored.one(HistoryReport)
    several = len(report.series) > 1
    what = f"{report.workload} {', '.join(report.operations)}".strip()
    counts = words.counted(sum(len(one.kernels) for one in report.series), "kernel")
    counts += f" in {len(report.series)} series" if several else ""
    return Document(
        title=f"{what}: how it moved over {counts}",
        made=common.made_of(stored),
        notices=tuple(_groups(report)),
        answers=tuple(
            _answer(series, f"series {number}" if several else "")
            for number, series in enumerate(report.series, start=1)
        ),
        facts=(
            ("workload", report.workload),
            ("operations", ", ".join(report.operations) or "all"),
            ("counted", words.COUNTED),
        ),
        sections=tuple(
            section
            for number, series in enumerate(report.series, start=1)
            for section in _sections(series, number if several else 0, report)
        ),
        environment=_environment(stored, report),
        suites=tuple(
            _suite(series, f"series {number}: " if several else "")
            for number, series in enumerate(report.series, start=1)
        ),
        notes=(
            *(note for one in report.series for note in one.notes),
            *(f"not shown: {text}" for text in report.left_out),
        ),
        warnings=report.warnings,
    )


def _suite(series: HistorySeries, title: str) -> Suite:
    """What changed with the last kernel."""
    return Suite(f"{title}the last step", tuple(_case(track, series) for track in series.tracks))


def _case(track: HistoryTrack, series: HistorySeries) -> Case:
    point = track.points[-1]
    if point.step is None:
        return Case(track.operation, Outcome.UNKNOWN, "nothing to compare it with")
    verdict = step_words(point.step)
    ends = " -> ".join(
        "-" if one is None else figures.number(one.value)
        for one in (track.points[-2].figure, point.figure)
    )
    verdict += "".join(
        f"; {form_of(name).step_text(name, one)}" for name, one in point.measured.items()
    )
    text = f"{ends} instructions an iteration, {figures.spread(point.step.effect)}"
    outcome = words.OUTCOMES[point.step.word]
    return Case(track.operation, outcome, verdict, (text, series.kernels[-1].name))


def step_words(step: PathStep) -> str:
    """Return a step in words."""
    size = f" ({figures.percent(step.percent)})" if step.word is not Word.SAME else ""
    return f"{step.word}{size}" + (f": {step.reason}" if step.reason else "")


def _groups(report: HistoryReport) -> Iterator[str]:
    """How the control groups of the kernels differ, which comes before any figure."""
    for number, series in enumerate(report.series, start=1):
        if series.groups:
            of = f" of series {number}" if len(report.series) > 1 else ""
            yield f"Control groups{of}: {series.groups}."


def _answer(series: HistorySeries, about: str) -> Answer:
    found = Counter(
        Word(word) for total in series.totals for word, n in total.words.items() for _ in range(n)
    )
    moved = moved_most(series)
    level = figures.percent(Fraction(series.totals[-1].level - 100))
    text = (
        f"From {series.kernels[0].name} to {series.kernels[-1].name}, over "
        f"{words.counted(len(series.kernels), 'kernel')}, the path changed by {level} in the "
        "geometric mean."
    )
    named = [f"{track.operation} ({figures.percent(part)})" for track, part, _ in moved[:_NAMED]]
    text += f" Most: {words.listed(named)}." if named else " No operation has a real step."
    chips = tuple(Chip(word, found[word], words.TONES[word]) for word in NOTABLE if found[word])
    return Answer((text,), chips, about, words.tone_of(found))


def _sections(series: HistorySeries, number: int, report: HistoryReport) -> Iterator[Section]:
    mark = f"-{number}" if number else ""
    title = f"Series {number}: " if number else ""
    blocks: list[Block] = []
    tracks = series.tracks
    if not report.operations:
        blocks += _chart_of_all(series), _table_of_all(series, mark), *_moved_table(series, mark)
        tracks = tuple(track for track, _, _ in moved_most(series))
    for at, track in enumerate(tracks):
        inner: tuple[Block, ...] = (_chart(track, series), _table(track, series, f"{mark}-{at}"))
        blocks += [Fold(track.operation, inner)] if not report.operations else inner
    listed = enumerate(series.kernels, start=1)
    kernels = Items(tuple(f"{at} {kernel_words(one)}" for at, one in listed))
    lead = Prose(
        f"Kernels by {series.ordered or 'version'}; a point is marked by the step to it: a real "
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
        Point(name, total.level, total.level, total.level, words.TONES[_word(total)])
        for name, total in zip(_row_names(series), series.totals, strict=True)
    ]
    said = ", ".join(f"{one.name}: {one.value:.2f}" for one in marks)
    caption = "All operations: geometric mean of the instructions, the first kernel is 100"
    return Chart("history", tuple(marks), "level", caption, f"{caption}. {said}", wide=True)


def _word(total: HistoryTotal) -> Word:
    """Of real steps the word is that of all of them together."""
    if total.change and any(total.words.get(word) for word in REAL):
        return Word.SLOWER if total.change.value > 1 else Word.FASTER
    return next((word for word in NOTABLE if total.words.get(word)), Word.SAME)


def _table_of_all(series: HistorySeries, mark: str) -> Table:
    steps = [word for word in NOTABLE if any(one.words.get(word) for one in series.totals)]
    columns = (
        Column("kernel", "name"),
        Column("level", "number", "the first kernel is 100"),
        Column("change", "number", "from the kernel before"),
        Column("spread", "number"),
        *(Column(str(word), "number") for word in steps),
    )
    rows = tuple(
        (
            Cell(name),
            Cell(f"{total.level:.2f}", total.level),
            *_change(total),
            *(Cell(str(total.words.get(word, 0)), total.words.get(word, 0)) for word in steps),
        )
        for name, total in zip(_names(series), series.totals, strict=True)
    )
    caption = "All operations together, and how many of them took which step"
    return Table(f"all{mark}", caption, columns, rows)


def _change(total: HistoryTotal) -> tuple[Cell, Cell]:
    change = total.change
    if change is None:
        return cells.NOTHING, cells.NOTHING
    reach = 100 * max(change.high - change.value, change.value - change.low)
    spread = Cell("exact") if change.exact else Cell(f"+-{reach:.2f}%", reach)
    return (cells.percent(Fraction(100 * (change.value - 1))), spread)


def _moved_table(series: HistorySeries, mark: str) -> Iterator[Block]:
    """The operations with real steps, from the first kernel to the last."""
    found = moved_most(series)
    if not found:
        yield Prose("No operation has a real step.")
        return
    columns = (
        Column("operation", "name"),
        *(Column(title, "number") for title in ("first", "last", "change", "largest step")),
        Column("at"),
    )
    rows = tuple(
        (
            Cell(track.operation),
            cells.number(known[0]),
            cells.number(known[-1]),
            cells.percent(part),
            cells.percent(step.percent if step else None),
            Cell(_names(series)[at]),
        )
        for track, part, at in found
        for step in (track.points[at].step,)
        for known in ([point.figure.value for point in track.points if point.figure],)
    )
    yield Table(f"moved{mark}", "Operations that moved, those that did most first", columns, rows)


def _chart(track: HistoryTrack, series: HistorySeries) -> Chart:
    marks = [
        Point(
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
    return Chart("history", tuple(marks), "instructions", caption, f"{caption}. {said}", wide=True)


def _table(track: HistoryTrack, series: HistorySeries, mark: str) -> Table:
    columns: tuple[Column, ...] = (
        Column("kernel", "name"),
        Column("instructions", "number", "an iteration"),
        Column("+-", "number", "how far these may be off"),
        Column("change", "number", "from the kernel before"),
        Column("spread", "number", "of the change"),
        Column("step", "word"),
        Column("why open"),
    )
    cpu = series.cpu.name if series.cpu else ""
    known = (name for point in track.points for name in point.measured if name != MODEL_CYCLES)
    measured = {name: form_of(name) for name in ([MODEL_CYCLES, *known] if cpu else known)}
    for measure, form in measured.items():
        columns += form.step_columns(measure, cpu)
    rows = tuple(
        (
            Cell(name),
            *_cells(point),
            *(
                cell
                for measure, form in measured.items()
                for cell in form.step_cells(point.measured.get(measure))
            ),
        )
        for name, point in zip(_names(series), track.points, strict=True)
    )
    return Table(f"track{mark}", f"{track.operation}, kernel by kernel", columns, rows)


def _cells(point: HistoryPoint) -> Sequence[Cell]:
    figure, step = point.figure, point.step
    known = (cells.number(figure.value), cells.spread(figure)) if figure else [cells.NOTHING] * 2
    if step is None:
        return (*known, *[cells.NOTHING] * 4)
    joined = (one.reason for name, one in point.measured.items() if form_of(name).joined)
    why = [step.reason, *joined]
    return (
        *known,
        cells.percent(step.percent),
        cells.spread(step.effect),
        cells.verdict(step.word),
        Cell("; ".join(dict.fromkeys(filter(None, why)))),
    )


def _environment(stored: Stored, report: HistoryReport) -> tuple[Section, ...]:
    facts: list[tuple[str, str]] = []
    for number, series in enumerate(report.series, start=1):
        of = f" of series {number}" if len(report.series) > 1 else ""
        facts += [(f"{name}{of}", text) for name, text in machine_facts(series.machine)]
        if series.cpu:
            facts.append((f"priced{of}", cpu_line(series.cpu)))
    specs = [
        f"{kernel.name}: {kernel.spec}; identity {kernel.identity}; runs {' '.join(kernel.runs)}"
        for series in report.series
        for kernel in series.kernels
    ]
    kernels = Fold(words.counted(len(specs), "kernel"), (Items(tuple(specs)),))
    return common.last_sections(stored, tuple(facts), (kernels,))


def kernel_words(kernel: HistoryKernel) -> str:
    """A kernel's date, name, version and subject in a line."""
    day = moment_text(kernel.date)[:10]
    dated = "" if kernel.dated == "commit" else " (run)"
    version = f", {kernel.version}" if kernel.version not in kernel.name else ""
    subject = f' ("{kernel.subject}")' if kernel.subject else ""
    return f"{day}{dated} {kernel.name}{version}{subject}"


def moved_most(series: HistorySeries) -> list[tuple[HistoryTrack, Fraction, int]]:
    """The operations with real steps, with by how much each moved over the series, in per cent, and
    at which kernel most; those that moved most first.
    """
    found = []
    for track in series.tracks:
        steps = [
            (abs(point.step.percent or Fraction(0)), at)
            for at, point in enumerate(track.points)
            if point.step and point.step.word in REAL
        ]
        known = [point.figure.value for point in track.points if point.figure]
        if steps and known[0]:
            largest = max(steps, key=lambda step: (step[0], -step[1]))
            found.append((track, 100 * (known[-1] - known[0]) / known[0], largest[1]))
    return sorted(found, key=lambda one: -abs(one[1]))
