# SPDX-License-Identifier: GPL-2.0-or-later
"""What any measure found, in a document: the verdicts in words, a chart, a table, a suite."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.effects.effects import FIRM, Word
from kdelta.report import cells, words
from kdelta.report.document import (
    Answer,
    Block,
    Case,
    Cell,
    Chart,
    Charts,
    Chip,
    Column,
    Items,
    Point,
    Section,
    Suite,
    Table,
)
from kdelta.report.figures import in_per_cent
from kdelta.report.measured import Effect, MeasuredEffects
from kdelta.report.model import Mismatch, ReportedCPU
from kdelta.report.words import TONES

_NAMED = 6


def chips(counts: Mapping[Word, int]) -> tuple[Chip, ...]:
    """Return how many verdicts have each word, what asks for a look first."""
    shown = [word for word in words.ORDER if counts.get(word)]
    return tuple(Chip(word.value, counts[word], TONES[word]) for word in shown)


def effects_chart(
    points: Sequence[Point], said: Iterable[str], of: str, caption: str, unit: str = ""
) -> Iterator[Chart]:
    """Draw effects, if there are any. said: each in words. of: what they are an effect on, in that
    unit if it is another one.
    """
    text = f"Effects on {of} by operation: {'; '.join(said)}"
    unit = f"% of the base's {unit or of}"
    if points:
        yield Chart("effects", tuple(points), unit, caption, text, wide=True)


def point_of(region: str, change: Interval, word: Word) -> Point:
    """Return a point for a change that is a fraction."""
    middle = 50 * (change.low + change.high)
    return Point(region, middle, 100 * change.low, 100 * change.high, TONES[word])


def answer(found: MeasuredEffects, about: str = "") -> Answer:
    """Return the verdicts of all regions, in a sentence and as chips. about: of which kernels."""
    counts = Counter(one.word for one in found.effects)
    shown = chips(counts)
    text = ", ".join(f"{one.count} {one.word}" for one in shown)
    of = words.counted(len(found.effects), "operation")
    return Answer(
        (f"Of {of}: {text}." if shown else "Nothing was measured.",),
        shown,
        f"{found.measure}{f', {about}' if about else ''}",
        words.tone_of(counts),
    )


def section(
    found: MeasuredEffects,
    title: str,
    mark: str = "",
    who: tuple[str, str] = ("base", "other"),
    more: Sequence[Block] = (),
) -> Section:
    """Return the section of a measure: its effects as a chart and a table.

    title: of the section. mark: what makes its ids unique. more: what follows the table.
    """
    caption = f"{found.measure[:1].upper()}{found.measure[1:]}, in {found.unit}"
    # The verdict and its size first, as in the path's table: a narrow screen shows them.
    columns = (
        Column("operation", "name"),
        *step_columns(found.measure),
        *(Column(name, "number", found.unit) for name in who),
        Column("why"),
    )
    rows = tuple(
        (
            Cell(one.region),
            *step_cells(one),
            cells.ends(one.base),
            cells.ends(one.other),
            Cell(one.reason),
        )
        for one in found.effects
    )
    table = Table(f"{_id(found)}-table{mark}", caption, columns, rows, filtered=True)
    others = _others(found, who, mark)
    return Section(f"{_id(found)}{mark}", title, (*_charts(found), table, *others, *more))


def _others(found: MeasuredEffects, who: tuple[str, str], mark: str) -> Iterator[Table]:
    """Yield a table of the figures in other units."""
    rows = tuple(
        (Cell(one.region), Cell(one.unit), cells.number(one.base), cells.number(one.other))
        for one in found.others
    )
    if rows:
        columns = (
            Column("operation", "name"),
            Column("unit"),
            *(Column(of, "number") for of in who),
        )
        yield Table(f"{_id(found)}-others{mark}", "The same in other units", columns, rows)


def step_columns(measure: str) -> tuple[Column, Column]:
    """Return the columns of `step_cells`."""
    return (
        Column(measure, "word", "the verdict on them"),
        Column(f"% {measure}", "number", "the interval of the change, of the base"),
    )


def step_cells(one: Effect | None) -> tuple[Cell, Cell]:
    """Return the verdict on a change, and its interval; empty cells for None."""
    if one is None:
        return cells.NOTHING, cells.NOTHING
    return cells.verdict(one.word), cells.relative(one.change)


def suite(found: MeasuredEffects, who: str = "") -> Suite:
    """Return a case for each region."""
    cases = []
    for one in found.effects:
        size = f" ({in_per_cent(one.change)})" if one.change else ""
        reason = f": {one.reason}" if one.reason else ""
        ends = (
            (f"{cells.ends(one.base).text} -> {cells.ends(one.other).text} {found.unit}",)
            if one.base and one.other
            else ()
        )
        cases.append(Case(one.region, words.OUTCOMES[one.word], f"{one.word}{size}{reason}", ends))
    return Suite(f"{who}{found.measure}", tuple(cases))


def _more(one: Effect) -> str:
    """By how much a firm verdict is one, or why where that is no number."""
    if one.change:
        return f" {in_per_cent(one.change)}"
    return f" ({one.reason})" if one.reason else ""


class EffectsView:
    """How documents show what a measure found, as any measure's. One with a way of its own has a
    subclass, and a line in measures/forms.py.

    joined  its figures are in the path's table and next to the path's chart
    """

    joined = False

    def answers(self, found: MeasuredEffects, about: str) -> Iterator[Answer]:
        """Yield the verdicts in words; about: of which kernels."""
        yield answer(found, about)

    def charts(self, found: MeasuredEffects, regions: Sequence[str]) -> Iterator[Chart]:
        """Yield what is drawn next to the path's effects, of these regions in this order."""
        yield from ()

    def columns(self) -> tuple[Column, ...]:
        """Return its columns of the path's table."""
        return ()

    def cells(self, found: MeasuredEffects, region: str) -> tuple[Cell, ...]:
        """Return a region's cells in these."""
        return ()

    def sections(
        self, found: MeasuredEffects, about: str, mark: str, cpu: ReportedCPU | None
    ) -> Iterator[Section]:
        """Yield its sections. about: of which kernels. mark: what makes its ids unique."""
        yield section(found, f"By {found.measure}" + (f": {about}" if about else ""), mark)

    def suites(self, found: MeasuredEffects, who: str) -> Iterator[Suite]:
        """Yield a case for each region."""
        yield suite(found, who)

    def screen(self, found: MeasuredEffects, mismatches: Sequence[Mismatch]) -> Section:
        """Return a line for each word, with the regions that have it, and the notes: for a first
        screen. mismatches: what was not as on the CPU, for figures that depend on it.
        """
        texts = []
        for word in words.ORDER:
            of = [one for one in found.effects if one.word is word]
            names = [one.region + (_more(one) if word in FIRM else "") for one in of]
            if names:
                texts.append(f"{word} ({len(names)}): {words.some(names, _NAMED)}")
        lines = Items((*texts, *found.notes))
        return Section(found.measure, f"By {found.measure}", (lines,))

    def step_columns(self, measure: str, cpu: str) -> tuple[Column, ...]:
        """Return the columns of `step_cells`. cpu: the one that was named, if any."""
        return step_columns(measure)

    def step_cells(self, one: Effect | None) -> tuple[Cell, ...]:
        """Return the verdict on a step from a kernel to the next; empty cells for None."""
        return step_cells(one)

    def step_text(self, measure: str, one: Effect) -> str:
        """Return the same in words."""
        return f"{measure} {one.word}"


def _charts(found: MeasuredEffects) -> Iterator[Charts]:
    known = [
        (one, one.change)
        for one in found.effects
        if one.change and math.isfinite(one.change.low + one.change.high)
    ]
    points = [point_of(one.region, change, one.word) for one, change in known]
    said = (f"{one.region} {in_per_cent(change)} {one.word}" for one, change in known)
    caption = f"{found.measure}: other less base, with the interval"
    for chart in effects_chart(points, said, found.measure, caption):
        yield Charts((chart,))


def _id(found: MeasuredEffects) -> str:
    return found.measure.replace(" ", "-")
