# SPDX-License-Identifier: GPL-2.0-or-later
"""Charts: Altair's specs, drawn by Vega as SVG, so that a page needs no library to show them."""

import statistics
from collections.abc import Sequence
from typing import Any

import altair as alt
import msgspec
import numpy as np
import vl_convert

from kdelta.report.html.svg import PAINT, page_svg

WIDTH = 340
"""Pixels: as wide as a phone. Wider screens scale a chart up, or put more side by side."""

BINS = 32
_ROW = 15
_LABELS = 140
_TICKS = (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 100_000)
_FAR = 10
"""From so many times the middle effect on, the largest one wants a scale of decades."""

_PLOT = 44
_SHIPPED = "shipped"


class Effect(msgspec.Struct, frozen=True):
    """A row of a chart of effects: value and interval in one unit, and its verdict's word."""

    name: str
    value: float
    low: float
    high: float
    tone: str


class Spread(msgspec.Struct, frozen=True):
    """A row of a chart of distributions: an ensemble, and the layout that was shipped. `colour` is
    a name of report/html/svg.py.
    """

    name: str
    draws: tuple[float, ...]
    shipped: float
    colour: str


def effects_svg(effects: Sequence[Effect], unit: str, tones: dict[str, str]) -> str:
    """Effects with their intervals, one a row, in the order given; names are unique. `tones`: the
    colour's name by the verdict's word.
    """
    data = _data([msgspec.to_builtins(one) for one in effects])
    scale, ticks = _effect_scale([abs(end) for one in effects for end in (one.low, one.high)])
    axis = alt.Axis(values=ticks, labelExpr="datum.value > 0 ? '+' + datum.label : datum.label")
    y = alt.Y(
        "name:N",
        sort=[one.name for one in effects],
        title=None,
        axis=alt.Axis(labelLimit=_LABELS - 8, domain=False, ticks=False, grid=False),
    )
    colour = alt.Color(
        "tone:N",
        legend=None,
        scale=alt.Scale(domain=list(tones), range=[PAINT[name] for name in tones.values()]),
    )
    zero = alt.Chart(_data([{}])).mark_rule(color=PAINT["ink"])
    reach = alt.Chart(data).mark_rule(strokeWidth=3, opacity=0.5)
    points = alt.Chart(data).mark_point(filled=True, size=40, opacity=1)
    x = alt.X("value:Q", title=unit, scale=scale, axis=axis)
    chart = alt.layer(
        zero.encode(x=alt.datum(0)),
        reach.encode(
            alt.X("low:Q", title=unit, scale=scale, axis=axis), alt.X2("high:Q"), y, colour
        ),
        points.encode(x, y, colour),
    )
    return _drawn(chart.properties(width=WIDTH - _LABELS, height=alt.Step(_ROW)))


def spreads_svg(spreads: Sequence[Spread], unit: str) -> str:
    """Ensembles below each other on one axis, each with its shipped layout marked."""
    every = [value for one in spreads for value in (*one.draws, one.shipped)]
    low, high = min(every), max(every)
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, BINS + 1)
    scale = alt.Scale(domain=[low, high], nice=False, zero=False)
    rows = [_spread(one, edges, scale, unit if one is spreads[-1] else "") for one in spreads]
    return _drawn(alt.vconcat(*rows, spacing=6))


def _spread(
    one: Spread, edges: Any, scale: alt.Scale, unit: str
) -> alt.LayerChart | alt.FacetChart:
    """One row; its axis has labels where it has a unit."""
    counts, _ = np.histogram(one.draws, edges)
    steps = [
        {"x": float(edge), "n": int(count)}
        for edge, count in zip(edges, [*counts, counts[-1]], strict=True)
    ]
    axis = alt.Axis(
        grid=False, tickCount=4, title=unit or None, labels=bool(unit), format="~s",
        labelFlush=True, domainColor=PAINT["line"],
    )  # fmt: skip
    x = alt.X("x:Q", scale=scale, axis=axis)
    title = alt.Axis(title=one.name, labels=False, ticks=False, grid=False, domain=False)
    area = (
        alt.Chart(_data(steps))
        .mark_area(interpolate="step-after", opacity=0.55, color=PAINT[one.colour])
        .encode(x, alt.Y("n:Q", axis=title))
    )
    shipped = alt.Chart(_data([{"x": one.shipped}]))
    rule = shipped.mark_rule(strokeWidth=2, color=PAINT["ink"]).encode(x)
    at_right = one.shipped > (scale.domain[0] + scale.domain[1]) / 2
    label = shipped.mark_text(
        align="right" if at_right else "left",
        dx=-4 if at_right else 4,
        y=5,
        color=PAINT["ink"],
        fontSize=10,
    ).encode(x, text=alt.datum(_SHIPPED))
    return alt.layer(area, rule, label).properties(width=WIDTH - 40, height=_PLOT)


def _data(rows: Sequence[dict[str, Any]]) -> alt.InlineData:
    return alt.InlineData(values=list(rows))


def _effect_scale(reach: Sequence[float]) -> tuple[alt.Scale, list[float]]:
    """A scale on which the least of the effects can be told from nought, and its ticks."""
    most = max(reach, default=0.0)
    middle = statistics.median([one for one in reach if one] or [1.0])
    if most <= _FAR * middle:
        return alt.Scale(), _even_ticks(most)
    ticks = [tick for tick in _TICKS if tick <= most] or [1]
    shown = ticks[:: 1 + len(ticks) // 5]
    return alt.Scale(type="symlog", constant=1), [*(-tick for tick in shown[::-1]), 0, *shown]


def _even_ticks(most: float) -> list[float]:
    if not most:
        return [0]
    step = 10.0 ** np.floor(np.log10(most))
    while most / step < 2:
        step /= 2
    count = min(4, int(most / step))
    return [round(step * index, 12) for index in range(-count, count + 1)]


def _drawn(chart: alt.TopLevelMixin) -> str:
    configured = (
        chart.configure(background="transparent", padding=2)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=PAINT["ink"],
            titleColor=PAINT["ink"],
            gridColor=PAINT["line"],
            tickColor=PAINT["line"],
            domainColor=PAINT["line"],
            labelFontSize=10,
            titleFontSize=11,
            titleFontWeight="normal",
        )
    )
    return page_svg(vl_convert.vegalite_to_svg(configured.to_dict()))
