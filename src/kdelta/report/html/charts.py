# SPDX-License-Identifier: GPL-2.0-or-later
"""Charts: Vega-Lite, drawn as SVG here, so that a page needs no library to show them."""

import math
import statistics
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import vl_convert

from kdelta.report.document import Chart, Point, Spread
from kdelta.report.html.svg import PAINT, page_svg

WIDTH = 340
"""Pixels: as wide as a phone. Wider screens scale a chart up, or put more side by side."""

BINS = 32
ROW = 15
_LABELS = 140
_KERNELS = 110
_TICKS = (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 100_000)
_EVEN = 4
_THOUSANDS = 10_000
_FAR = 10
"""From so many times the middle effect on, the largest one wants a scale of decades."""

_PLOT = 44
_SHIPPED = "shipped"
_LEAST_PART = 0.01
"""A chart is not of less than such a part of the largest figure: what hardly moves is not to look
as if it did.
"""

_CONFIG = {
    "view": {"stroke": None},
    "axis": {
        "labelColor": PAINT["ink"],
        "titleColor": PAINT["ink"],
        "gridColor": PAINT["line"],
        "tickColor": PAINT["line"],
        "domainColor": PAINT["line"],
        "labelFontSize": 10,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
    },
}
PAGE = {
    "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
    "background": "transparent",
    "padding": 2,
    "config": _CONFIG,
}
ROOM = {"left": 22, "right": 14, "top": 2, "bottom": 2}
"""Around a chart with names: a browser's letters may be wider than those it was drawn with."""

_SIGNED = "datum.value > 0 ? '+' + datum.label : datum.label"

Spec = dict[str, Any]
"""A chart as Vega-Lite has it. They are written down as they are: to build one by Altair takes
several times as long as to draw it, and a comparison has a hundred.
"""


def chart_svg(chart: Chart) -> str:
    """The chart as SVG that suits a page."""
    return page_svg(vl_convert.vegalite_to_svg(chart_spec(chart)))


def chart_spec(chart: Chart) -> Spec:
    """The same as Vega-Lite."""
    points = [one for one in chart.rows if isinstance(one, Point)]
    if chart.shape == "effects":
        return effects_spec(points, chart.unit)
    if chart.shape == "history":
        return history_spec(points, chart.unit)
    return spreads_spec([one for one in chart.rows if isinstance(one, Spread)], chart.unit)


def effects_spec(effects: Sequence[Point], unit: str) -> Spec:
    """Effects with their intervals, one a row, in the order given."""
    scale, ticks = _effect_scale([abs(end) for one in effects for end in (one.low, one.high)])
    along = {
        "type": "quantitative",
        "title": unit,
        "scale": scale,
        "axis": {"values": ticks, "labelExpr": _SIGNED, "labelOverlap": "greedy", "format": ",~f"},
    }
    zero: Spec = {
        "data": {"values": [{}]},
        "mark": {"type": "rule", "color": PAINT["ink"]},
        "encoding": {"x": {"datum": 0, **along}},
    }
    row = _row(_LABELS, grid=False)
    return {
        **_points(effects, _LABELS, [zero, *_intervals(effects, along, row, 40)]),
        "padding": ROOM,
    }


def _row(labels: int, *, grid: bool) -> Spec:
    """The axis of names, which have so many pixels."""
    return {
        "field": "name",
        "type": "nominal",
        # Not a list of names: Vega-Lite would put them into an expression.
        "sort": {"field": "at", "op": "min"},
        "title": None,
        "axis": {"labelLimit": labels - 8, "domain": False, "ticks": False, "grid": grid},
    }


def _intervals(points: Sequence[Point], along: Spec, row: Spec, size: int) -> list[Spec]:
    """The layers of the intervals, and of the points in them."""
    # By a point's tone.
    names = list(dict.fromkeys(one.tone for one in points))
    colours = {"domain": names, "range": [PAINT[name] for name in names]}
    colour = {"field": "tone", "type": "nominal", "legend": None, "scale": colours}
    reach = {"x": {"field": "low", **along}, "x2": {"field": "high"}, "y": row, "color": colour}
    point = {"x": {"field": "value", **along}, "y": row, "color": colour}
    return [
        {"mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.5}, "encoding": reach},
        {"mark": {"type": "point", "filled": True, "size": size, "opacity": 1}, "encoding": point},
    ]


def _points(points: Sequence[Point], labels: int, layers: Sequence[Spec]) -> Spec:
    """A chart of points, one a row."""
    values = [{"at": at, **msgspec.to_builtins(one)} for at, one in enumerate(points)]
    return {
        **PAGE,
        "data": {"values": values},
        "width": WIDTH - labels,
        "height": {"step": ROW},
        "layer": layers,
    }


def spreads_spec(spreads: Sequence[Spread], unit: str) -> Spec:
    """Ensembles below each other on one axis, each with its layout as linked marked."""
    every = [value for one in spreads for value in (*one.draws, one.shipped)]
    low, high = min(every), max(every)
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, BINS + 1).tolist()
    units = [*[""] * (len(spreads) - 1), unit]
    rows = [_spread(one, edges, its) for one, its in zip(spreads, units, strict=True)]
    return {**PAGE, "spacing": 6, "vconcat": rows}


def _along(edges: Sequence[float], unit: str) -> Spec:
    """The axis of values, with labels where it has a unit."""
    return {
        "type": "quantitative",
        "scale": {"domain": [edges[0], edges[-1]], "nice": False, "zero": False},
        "axis": {
            "grid": False,
            "tickCount": 4,
            "title": unit or None,
            "labels": bool(unit),
            # Thousands have a letter; what is less than one would have a letter, too.
            "format": "~s" if edges[-1] >= _THOUSANDS else "~g",
            "labelFlush": True,
        },
    }


def _spread(one: Spread, edges: Sequence[float], unit: str) -> Spec:
    """One row; its axis has labels where it has a unit."""
    counts = np.histogram(one.draws, edges)[0].tolist()
    along = _along(edges, unit)
    plain = {"title": one.name, "labels": False, "ticks": False, "grid": False, "domain": False}
    at_right = one.shipped > (edges[0] + edges[-1]) / 2
    shipped = {"data": {"values": [{"x": one.shipped}]}}
    x = {"field": "x", **along}
    layers: list[Spec] = [
        {
            "data": {
                "values": [
                    {"x": edge, "n": count}
                    for edge, count in zip(edges, [*counts, counts[-1]], strict=True)
                ]
            },
            "mark": {
                "type": "area",
                "interpolate": "step-after",
                "opacity": 0.55,
                "color": PAINT[one.colour],
            },
            "encoding": {"x": x, "y": {"field": "n", "type": "quantitative", "axis": plain}},
        },
        {
            **shipped,
            "mark": {"type": "rule", "strokeWidth": 2, "color": PAINT["ink"]},
            "encoding": {"x": x},
        },
        {
            **shipped,
            "mark": {
                "type": "text",
                "text": _SHIPPED,
                "align": "right" if at_right else "left",
                "dx": -4 if at_right else 4,
                "y": 5,
                "color": PAINT["ink"],
                "fontSize": 10,
            },
            "encoding": {"x": x},
        },
    ]
    return {"width": WIDTH - 40, "height": _PLOT, "layer": layers}


def _effect_scale(reach: Sequence[float]) -> tuple[Spec, list[float]]:
    """A scale on which the least of the effects can be seen to differ from zero, and its ticks."""
    most = max(reach, default=0.0)
    middle = statistics.median([one for one in reach if one] or [1.0])
    if most <= _FAR * middle:
        return {}, _even_ticks(most)
    ticks = [tick for tick in _TICKS if tick <= most] or [1]
    shown = ticks[:: 1 + len(ticks) // 5]
    return {"type": "symlog", "constant": 1}, [*(-tick for tick in shown[::-1]), 0, *shown]


def _even_ticks(most: float) -> list[float]:
    """At most four round ones on either side of zero."""
    if not most:
        return [0]
    size = 10.0 ** math.floor(math.log10(most / _EVEN))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor * _EVEN >= most)
    count = int(most / step)
    return [round(step * index, 12) for index in range(-count, count + 1)]


def history_spec(marks: Sequence[Point], unit: str) -> Spec:
    """A kernel a row, in order: a thin line from kernel to kernel, intervals, and points."""
    along = {
        "type": "quantitative",
        "title": unit,
        "scale": {"domain": _domain(marks), "zero": False, "nice": False},
        "axis": {"tickCount": 4, "format": "~r", "labelFlush": True},
    }
    row = _row(_KERNELS, grid=True)
    order = {"field": "at", "type": "quantitative"}
    line = {
        "mark": {"type": "line", "color": PAINT["line"], "strokeWidth": 1.5},
        "encoding": {"x": {"field": "value", **along}, "y": row, "order": order},
    }
    return {
        **_points(marks, _KERNELS, [line, *_intervals(marks, along, row, 45)]),
        # Labels are drawn in the page's font, which may be wider than the one they are laid out in.
        "padding": {"left": 16, "right": 6, "top": 2, "bottom": 2},
    }


def _domain(marks: Sequence[Point]) -> list[float]:
    low, high = min(one.low for one in marks), max(one.high for one in marks)
    short = max(0.0, abs(high) * _LEAST_PART - (high - low)) / 2 or (0.5 if low == high else 0.0)
    return [low - short, high + short]
