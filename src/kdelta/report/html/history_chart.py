# SPDX-License-Identifier: GPL-2.0-or-later
"""The chart of a history: a kernel a row, a point where its figure is, coloured by its step."""

from collections.abc import Sequence

import msgspec
import vl_convert

from kdelta.report.html.charts import PAGE, ROW, WIDTH, Spec
from kdelta.report.html.svg import PAINT, page_svg

_LABELS = 110
_LEAST_PART = 0.01
"""A chart is not of less than such a part of the largest figure: what hardly moves is not to look
as if it did.
"""


class Mark(msgspec.Struct, frozen=True):
    """A kernel: its figure and interval, and the colour's name (report/html/svg.py)."""

    name: str
    value: float
    low: float
    high: float
    tone: str


def history_svg(marks: Sequence[Mark], unit: str) -> str:
    """The chart; names are unique, and in order."""
    return page_svg(vl_convert.vegalite_to_svg(history_spec(marks, unit)))


def history_spec(marks: Sequence[Mark], unit: str) -> Spec:
    """The same as Vega-Lite: a thin line from kernel to kernel, intervals, and points."""
    along = {
        "type": "quantitative",
        "title": unit,
        "scale": {"domain": _domain(marks), "zero": False, "nice": False},
        "axis": {"tickCount": 4, "format": "~r", "labelFlush": True},
    }
    row = {
        "field": "name",
        "type": "nominal",
        # Not a list of names: Vega-Lite would put them into an expression.
        "sort": {"field": "at", "op": "min"},
        "title": None,
        "axis": {"labelLimit": _LABELS - 8, "domain": False, "ticks": False, "grid": True},
    }
    names = list(dict.fromkeys(one.tone for one in marks))
    colours = {"domain": names, "range": [PAINT[name] for name in names]}
    colour = {"field": "tone", "type": "nominal", "legend": None, "scale": colours}
    x = {"field": "value", **along}
    line = {"x": x, "y": row, "order": {"field": "at", "type": "quantitative"}}
    reach = {"x": {"field": "low", **along}, "x2": {"field": "high"}, "y": row, "color": colour}
    return {
        **PAGE,
        # Labels are drawn in the page's font, which may be wider than the one they are laid out in.
        "padding": {"left": 16, "right": 6, "top": 2, "bottom": 2},
        "data": {
            "values": [{"at": at, **msgspec.to_builtins(one)} for at, one in enumerate(marks)]
        },
        "width": WIDTH - _LABELS,
        "height": {"step": ROW},
        "layer": [
            {
                "mark": {"type": "line", "color": PAINT["line"], "strokeWidth": 1.5},
                "encoding": line,
            },
            {"mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.5}, "encoding": reach},
            {
                "mark": {"type": "point", "filled": True, "size": 45, "opacity": 1},
                "encoding": {"x": x, "y": row, "color": colour},
            },
        ],
    }


def _domain(marks: Sequence[Mark]) -> list[float]:
    low, high = min(one.low for one in marks), max(one.high for one in marks)
    short = max(0.0, abs(high) * _LEAST_PART - (high - low)) / 2 or (0.5 if low == high else 0.0)
    return [low - short, high + short]
