# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the parts of a chart are; templates/charts.html.j2 draws them as SVG.

Places along a chart are per cent of its plot and heights are pixels, so a chart is as wide as its
page and its letters stay as large as the page's.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

import msgspec

from kdelta.report import figures
from kdelta.report.document import Chart, Point, Spread

ROW = 20
"""Pixels, as all heights here."""

AXIS = 20
LABEL = 14
HISTOGRAM = 40
DISTRIBUTION = LABEL + HISTOGRAM + 8
"""A histogram with the line of its label, and what is between two of them."""

BINS = 32

_DECADES = (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 100_000)
_FAR = 10
"""From so many times the middle effect on, the largest one wants a scale of decades."""

_EVEN = 4
_LETTER, _LETTER_ON_PHONES = 1.6, 5.0
"""Per cent of a plot that a letter of the axis takes at most."""

_APART = 2
"""Letters between two labels of the axis."""

_THOUSANDS = 10_000
_LEAST_PART = 0.01
"""A chart is not of less than such a part of the largest figure: what hardly moves is not to look
as if it did.
"""


Place = Callable[[float], float]
"""Gives where a figure is, in per cent of the plot."""


class Tick(msgspec.Struct, frozen=True):
    """A line of the grid. `text` is empty where it has no room; `wide`: where a phone has none."""

    at: float
    text: str
    wide: bool = False


class Mark(msgspec.Struct, frozen=True):
    """A point with its interval, in the row whose middle is `y`.

    text   its figure, which stands left of the interval if `left`, else right of it
    tip    all that is known of it
    """

    name: str
    y: int
    at: float
    low: float
    high: float
    text: str
    left: bool
    tone: str
    tip: str


class RowPlot(msgspec.Struct, frozen=True):
    """Points, one a row. `zero`: where a line is drawn, if anywhere; `joined`: from point to point.
    `signed`: figures stand on both sides.
    """

    marks: tuple[Mark, ...]
    ticks: tuple[Tick, ...]
    unit: str
    zero: float | None
    joined: bool
    signed: bool
    form: str = "rows"

    @property
    def bottom(self) -> int:
        """Where the axis is."""
        return ROW * len(self.marks)

    @property
    def height(self) -> int:
        """Of the whole."""
        return self.bottom + AXIS

    @property
    def steps(self) -> tuple[tuple[Mark, Mark], ...]:
        """Each point with the next one."""
        return tuple(pairwise(self.marks)) if self.joined else ()


class Histogram(msgspec.Struct, frozen=True):
    """How many layouts have which cost: `heights` are per cent of HISTOGRAM, a bin each.
    `as_linked` is where the layout as linked is, and `text` says so, left of it if `left`.
    """

    name: str
    top: int
    heights: tuple[float, ...]
    as_linked: float
    text: str
    left: bool
    colour: str
    tip: str

    @property
    def first(self) -> int:
        """Where its bins begin."""
        return self.top + LABEL

    @property
    def last(self) -> int:
        """Where they end."""
        return self.first + HISTOGRAM

    @property
    def path(self) -> str:
        """Its outline, in bins and per cent of the height."""
        steps = (f"V{100 - height:.4g}H{at + 1}" for at, height in enumerate(self.heights))
        return f"M0 100{''.join(steps)}V100Z"


class Histograms(msgspec.Struct, frozen=True):
    """Distributions below each other on one axis."""

    histograms: tuple[Histogram, ...]
    ticks: tuple[Tick, ...]
    unit: str
    form: str = "histograms"

    @property
    def bottom(self) -> int:
        """Where the axis is."""
        return DISTRIBUTION * len(self.histograms)

    @property
    def height(self) -> int:
        """Of the whole."""
        return self.bottom + AXIS


def plot_of(chart: Chart) -> RowPlot | Histograms:
    """Return what is drawn of a chart, and where."""
    points = [one for one in chart.rows if isinstance(one, Point)]
    if chart.shape == "effects":
        return effects_plot(points, chart.unit)
    if chart.shape == "history":
        return history_plot(points, chart.unit)
    return spreads_plot([one for one in chart.rows if isinstance(one, Spread)], chart.unit)


def effects_plot(effects: Sequence[Point], unit: str) -> RowPlot:
    """Return effects in per cent with their intervals, in the order given, around zero."""
    ends = [end for one in effects for end in (one.low, one.value, one.high)]
    low, high = min(0.0, *ends), max(0.0, *ends)
    far, ticks = _effect_ticks(ends)
    place = _placing(low, high, _decades if far else float)
    return RowPlot(
        marks=_marks(effects, place, figures.percent_within),
        ticks=_spaced([(place(one), f"{one:+,.10g}" if one else "0") for one in ticks
                       if low <= one <= high]),
        unit=f"{unit}, logarithmic scale" if far else unit,
        zero=place(0.0),
        joined=False,
        signed=low < 0,
    )  # fmt: skip


def history_plot(points: Sequence[Point], unit: str) -> RowPlot:
    """Return a kernel a row, in the order given, with a line from kernel to kernel."""
    low, high = min(one.low for one in points), max(one.high for one in points)
    short = max(0.0, abs(high) * _LEAST_PART - (high - low)) / 2 or (0.5 if low == high else 0.0)
    low, high = low - short, high + short
    place = _placing(low, high, float)
    return RowPlot(
        marks=_marks(points, place, lambda value, _: figures.fitted(value)),
        ticks=_spaced(_even_labels(low, high, place)),
        unit=unit,
        zero=None,
        joined=True,
        signed=False,
    )


def spreads_plot(spreads: Sequence[Spread], unit: str) -> Histograms:
    """Return ensembles below each other on one axis, each with its layout as linked."""
    every = [value for one in spreads for value in (*one.draws, one.as_linked)]
    low, high = min(every), max(every)
    if low == high:
        low, high = low - 0.5, high + 0.5
    place = _placing(low, high, float)
    return Histograms(
        tuple(
            _histogram(one, DISTRIBUTION * at, (low, high), place) for at, one in enumerate(spreads)
        ),
        _spaced(_even_labels(low, high, place)),
        unit,
    )


def _marks(
    points: Sequence[Point], place: Place, text: Callable[[Fraction, Fraction], str]
) -> tuple[Mark, ...]:
    """text: gives a figure that may be off by +-so much, 0 if it is exact, as it is shown."""
    found = []
    for at, one in enumerate(points):
        low, value, high = map(Fraction, (one.low, one.value, one.high))
        ends = text(low, Fraction(0)), text(high, Fraction(0))
        shown = text(value, (high - low) / 2)
        reach = "" if one.low == one.high else f", {figures.span(*ends)}"
        found.append(
            Mark(
                name=one.name,
                y=ROW * at + ROW // 2,
                at=place(one.value),
                low=place(one.low),
                high=place(one.high),
                text=shown,
                left=one.value < 0,
                tone=one.tone,
                tip=f"{one.name}: {shown}{reach}",
            )
        )
    return tuple(found)


def _histogram(one: Spread, top: int, ends: tuple[float, float], place: Place) -> Histogram:
    low, high = ends
    counts = [0] * BINS
    for draw in one.draws:
        counts[min(BINS - 1, int(BINS * (draw - low) / (high - low)))] += 1
    most = max(counts)
    shipped, least, largest = (
        figures.fitted(Fraction(value)) for value in (one.as_linked, min(one.draws), max(one.draws))
    )
    return Histogram(
        name=one.name,
        top=top,
        heights=tuple(100 * count / most for count in counts),
        as_linked=place(one.as_linked),
        text=f"as linked {shipped}",
        left=place(one.as_linked) > 50,
        colour=one.colour,
        tip=f"{one.name}: {figures.span(least, largest)}, as linked {shipped}",
    )


def _placing(low: float, high: float, scale: Callable[[float], float]) -> Place:
    """Return what gives the place of a figure between two ends, in per cent."""
    start, length = scale(low), scale(high) - scale(low)
    return lambda value: round(100 * (scale(value) - start) / length, 3) if length else 50.0


def _decades(value: float) -> float:
    """A logarithmic scale for both signs, which is even near zero."""
    return math.copysign(math.log1p(abs(value)), value)


def _effect_ticks(ends: Sequence[float]) -> tuple[bool, list[float]]:
    """Whether a scale of decades is needed to see the least of the effects, and its ticks."""
    sizes = [abs(end) for end in ends if end]
    most = max(sizes, default=0.0)
    if most <= _FAR * statistics.median(sizes or [1.0]):
        return False, _even_ticks(-most, most) if most else [0.0]
    ticks = [float(one) for one in _DECADES if one <= most] or [1.0]
    return True, [*(-one for one in ticks[::-1]), 0.0, *ticks]


def _even_labels(low: float, high: float, place: Place) -> list[tuple[float, str]]:
    return [(place(one), _figure(one)) for one in _even_ticks(low, high)]


def _even_ticks(low: float, high: float) -> list[float]:
    """Round figures between two ends, about eight."""
    size = 10.0 ** math.floor(math.log10((high - low) / (2 * _EVEN)))
    step = next(size * by for by in (1, 2, 5, 10) if size * by * 2 * _EVEN >= (high - low))
    first, last = math.ceil(low / step), math.floor(high / step)
    return [round(step * index, 12) for index in range(first, last + 1)]


def _figure(value: float) -> str:
    """A figure of an axis; thousands have a letter."""
    if abs(value) >= _THOUSANDS and value % 100 == 0:
        return f"{value / 1000:,.10g}k"
    return f"{value:.10g}"


def _spaced(ticks: Sequence[tuple[float, str]]) -> tuple[Tick, ...]:
    """The ticks, with texts where there is room, from zero outwards or from the first one on."""
    zero = next((at for at, text in ticks if text == "0"), ticks[0][0] if ticks else 0.0)
    on_screens: list[tuple[float, str]] = []
    on_phones: list[tuple[float, str]] = []
    found: dict[float, Tick] = {}
    for at, text in sorted(ticks, key=lambda one: abs(one[0] - zero)):
        fits = _fits(at, text, on_screens, _LETTER)
        narrow = fits and _fits(at, text, on_phones, _LETTER_ON_PHONES)
        on_screens += [(at, text)] if fits else []
        on_phones += [(at, text)] if narrow else []
        found[at] = Tick(at, text if fits else "", wide=fits and not narrow)
    return tuple(found[at] for at, _ in ticks)


def _fits(at: float, text: str, others: Sequence[tuple[float, str]], letter: float) -> bool:
    """Whether a label has room next to these, where a letter takes so many per cent."""
    return all(
        abs(at - place) >= letter * ((len(text) + len(other)) / 2 + _APART)
        for place, other in others
    )
