# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta log` as text that can be pasted into a mail: tables, and a plot of signs."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from kdelta.infer.effects import OPEN, Word
from kdelta.infer.estimate import Estimate
from kdelta.infer.history import Change
from kdelta.report import figures
from kdelta.report.cycles import cpu_line, in_per_cent
from kdelta.report.history_model import (
    NOTABLE,
    REAL,
    HistoryKernel,
    HistoryReport,
    HistorySeries,
    HistoryTotal,
    HistoryTrack,
    PathStep,
)
from kdelta.report.layout import finished, labelled, machine_lines, warning_lines, wrapped
from kdelta.store.model import moment_text

NAME = 22
FIGURE = 10
PLOT = 44
MOVED = 8

_LEAST_PART = 100
"""A plot is not of less than such a part of the largest figure, from its left to its right end."""

SIGNS = {
    Word.SLOWER: "*",
    Word.FASTER: "*",
    Word.PLACEMENT_ONLY: "p",
    **dict.fromkeys(OPEN, "?"),
    Word.SAME: "o",
    Word.NOT_COMPARABLE: "o",
    Word.NOT_SLOWER: "o",
}
"""How a point of a plot shows the step to it."""

SIGNS_NOTE = (
    "* a real step to it, p placement only, ? open, o the same or nothing before it to compare with"
)


def history_text(report: HistoryReport, moved: int = MOVED) -> str:
    """The whole report; of a summary, the `moved` operations that moved most."""
    what = ", ".join(report.operations) or "all operations"
    title = f"kdelta log: workload {report.workload}, {what}, instructions an iteration"
    lines = wrapped(title, "", "  ")
    for number, series in enumerate(report.series, start=1):
        title = f"series {number}" if len(report.series) > 1 else "series"
        lines += ["", *_head(title, series), ""]
        if report.operations:
            for at, track in enumerate(series.tracks):
                lines += ["", *track_lines(track, series)] if at else track_lines(track, series)
        else:
            lines += _summary(series, moved)
        notes = [line for note in series.notes for line in wrapped(f"note: {note}", "", "  ")]
        lines += ["", *notes] if notes else []
    lines += [""] if report.left_out else []
    for text in report.left_out:
        lines += wrapped(f"not shown: {text}", "", "  ")
    return finished([*lines, *warning_lines(report.warnings)])


def _head(title: str, series: HistorySeries) -> list[str]:
    count = f"{len(series.kernels)} kernels"
    lines = labelled(title, f"{count}, by {series.ordered}" if series.ordered else count)
    lines += machine_lines(series.machine)
    if series.cpu:
        lines += labelled("priced", cpu_line(series.cpu))
    lines += labelled("kernels", "by number; dates of commits, or (run) of the first run")
    for number, kernel in enumerate(series.kernels, start=1):
        lines += wrapped(f"{number:>3} {kernel_words(kernel)}", "  ", "      ")
    return lines


def kernel_words(kernel: HistoryKernel) -> str:
    """A kernel's date, name, version and subject in a line."""
    day = moment_text(kernel.date)[:10]
    dated = "" if kernel.dated == "commit" else " (run)"
    version = f", {kernel.version}" if kernel.version not in kernel.name else ""
    subject = f' ("{kernel.subject}")' if kernel.subject else ""
    return f"{day}{dated} {kernel.name}{version}{subject}"


def short_names(series: HistorySeries) -> list[str]:
    """The kernels' names with their numbers, cut to a column."""
    return [
        cut_name(f"{number:>3} {kernel.name}")
        for number, kernel in enumerate(series.kernels, start=1)
    ]


def cut_name(name: str) -> str:
    """A name in a column; what of it is cut off is said by a tilde."""
    return f"{name:<{NAME}}" if len(name) <= NAME else f"{name[: NAME - 1]}~"


def track_lines(track: HistoryTrack, series: HistorySeries) -> list[str]:
    """An operation's table, and its plot."""
    heads = f"{'insns':>{FIGURE}} {'+-':>6} {'diff':>{FIGURE}} {'%':>8}"
    lines = [f"{track.operation}", f"{'':<{NAME}} {heads}  step"]
    before: Estimate | None = None
    for name, point in zip(short_names(series), track.points, strict=True):
        lines.append(f"{name} {_cells(point.figure, before)}{_step(point.step)}".rstrip())
        before = point.figure
    reasons = dict.fromkeys(p.step.reason for p in track.points if p.step and p.step.reason)
    lines += [line for text in reasons for line in wrapped(f"step: {text}", "  ", "    ")]
    lines += _cycle_lines(track, series)
    values = [float(p.figure.value) if p.figure else None for p in track.points]
    words = [p.step.word if p.step else Word.SAME for p in track.points]
    return [*lines, "", *plot(short_names(series), values, words)]


def _cells(figure: Estimate | None, before: Estimate | None) -> str:
    if figure is None:
        return f"{'-':>{FIGURE}}"
    unit = figures.unit_of(figure.value, before.value if before else Fraction(0))
    mine = figures.scaled(figure.value, unit)
    reach = "exact" if figure.exact else "n=1" if figure.n < 2 else figures.short(figure.half_width)
    cells = f"{figures.plain(mine, FIGURE, aligned=False)} {reach:>6}"
    if before is None:
        return cells
    # The difference is that of what is printed, so that the column adds up.
    diff = mine - figures.scaled(before.value, unit)
    value = figure.value - before.value
    part = 100 * value / before.value if before.value else None
    return (
        f"{cells} {figures.signed(diff, FIGURE, value, aligned=False)} {figures.percent(part):>8}"
    )


def _step(step: PathStep | None) -> str:
    return f"  {step.word}" if step else ""


def _cycle_lines(track: HistoryTrack, series: HistorySeries) -> list[str]:
    if series.cpu is None or not any(point.cycles for point in track.points):
        return []
    head = f"  model cycles on {series.cpu.name}, over random layouts; as shipped"
    lines = ["", head]
    for name, point in zip(short_names(series), track.points, strict=True):
        if point.cycles:
            found = point.cycles
            text = f"{found.word} ({in_per_cent(found.relative)}; {in_per_cent(found.shipped)})"
            lines.append(f"{name} {text}")
            if found.reason:
                lines += wrapped(found.reason, " " * (NAME + 3), " " * (NAME + 3))
    return lines


def plot(
    names: Sequence[str], values: Sequence[float | None], words: Sequence[Word]
) -> Iterator[str]:
    """A line for each kernel with its point between the least figure and the most."""
    known = [value for value in values if value is not None]
    if not known:
        return
    # What hardly moves is not to look as if it did.
    least, most = min(known), max(*known, min(known) + abs(max(known)) / _LEAST_PART)
    room = PLOT - 1
    ends = f"{least:.6g}", f"{most:.6g}"
    yield f"{'':<{NAME}} {ends[0]}{ends[1]:>{PLOT - len(ends[0])}}"
    for name, value, word in zip(names, values, words, strict=True):
        if value is None:
            yield name.rstrip()
            continue
        at = round((value - least) / (most - least) * room) if most > least else 0
        row = "." * at + SIGNS[word] + "." * (room - at)
        yield f"{name} {row}"
    yield from wrapped(SIGNS_NOTE, "  ", "  ")


def _summary(series: HistorySeries, moved: int) -> list[str]:
    """All operations together, and those that moved most."""
    lines = ["all operations: geometric mean, the first kernel is 100; steps in the path"]
    heads = f"{'level':>9} {'change':>8} {'+-':>7}"
    counts = " ".join(f"{head:>6}" for head in ("slower", "faster", "placed", "open"))
    lines.append(f"{'':<{NAME}} {heads} {counts}")
    names = short_names(series)
    for name, total in zip(names, series.totals, strict=True):
        lines.append(f"{name} {_total(total)}".rstrip())
    words = [_word(total) for total in series.totals]
    levels = [total.level for total in series.totals]
    lines += ["", *plot(names, levels, words), ""]
    return [*lines, *_moved(series, moved)]


def _total(total: HistoryTotal) -> str:
    level = f"{total.level:>9.2f}"
    if total.change is None:
        return level
    reach = _reach(total.change)
    part = figures.percent(Fraction(100 * (total.change.value - 1)))
    columns = [[Word.SLOWER], [Word.FASTER], [Word.PLACEMENT_ONLY], OPEN - {Word.NOT_COMPARABLE}]
    counts = [sum(total.words.get(word, 0) for word in words) for words in columns]
    return f"{level} {part:>8} {reach:>7} " + " ".join(f"{count or '-':>6}" for count in counts)


def _reach(change: Change) -> str:
    if change.exact:
        return "exact"
    reach = max(change.high - change.value, change.value - change.low)
    return f"{100 * reach:.2f}%"


def _word(total: HistoryTotal) -> Word:
    """How a kernel stands in the plot of all: a real step of any operation comes first."""
    for word in NOTABLE:
        if total.words.get(word):
            return word
    return Word.SAME


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


def _moved(series: HistorySeries, limit: int) -> list[str]:
    found = moved_most(series)
    if not found:
        return ["no operation has a real step"]
    lines = ["moved most, first kernel to last; and the largest real step"]
    for track, part, at in found[:limit]:
        step = track.points[at].step
        known = [point.figure.value for point in track.points if point.figure]
        first, last = (figures.number(value) for value in (known[0], known[-1]))
        told = figures.percent(step.percent) if step else ""
        lines += wrapped(
            f"{track.operation:<{NAME}} {first} -> {last} ({figures.percent(part)}); {told} at "
            f"{at + 1} {series.kernels[at].name}",
            "  ",
            "    ",
        )
    if len(found) > limit:
        lines.append(f"  and {len(found) - limit} more; -o names one")
    return lines
