# SPDX-License-Identifier: GPL-2.0-or-later
"""Charts: what is in them, that they are Vega-Lite, and that their SVG suits a page."""

from collections.abc import Callable

import altair as alt
import pytest

from kdelta.report.document import Chart, Point, Spread
from kdelta.report.html.charts import (
    BINS,
    chart_svg,
    effects_spec,
    spreads_spec,
)
from kdelta.report.html.svg import page_svg

EFFECTS = [
    Point("read</text><script>alert(1)</script>", 12.0, 10.0, 14.0, "slower"),
    Point("a & b\u2028c", -3.0, -4.0, -2.0, "faster"),
]
SPREADS = [
    Spread("base", tuple(float(n % 17) for n in range(128)), 16.0, "base"),
    Spread("other", tuple(float(n % 7) for n in range(128)), 0.5, "other"),
]


def effects_svg() -> str:
    return chart_svg(Chart("effects", tuple(EFFECTS), "%", "", ""))


def spreads_svg(*spreads: Spread) -> str:
    return chart_svg(Chart("spreads", spreads, "misses", "", ""))


def test_specs_are_vega_lite() -> None:
    alt.LayerChart.from_dict(effects_spec(EFFECTS, "%"))
    alt.VConcatChart.from_dict(spreads_spec(SPREADS, "misses"))


def test_effects_keep_their_order_and_ends() -> None:
    spec = effects_spec(EFFECTS, "% of base")
    points = spec["layer"][-1]["encoding"]
    assert points["y"]["sort"]["field"] == "at"
    assert [(row["at"], row["name"]) for row in spec["data"]["values"]] == [
        (at, one.name) for at, one in enumerate(EFFECTS)
    ]
    assert points["x"]["title"] == "% of base"
    assert [row["low"] for row in spec["data"]["values"]] == [10.0, -4.0]


def test_far_effects_get_decades_and_near_ones_do_not() -> None:
    near = effects_spec(EFFECTS, "%")["layer"][-1]["encoding"]["x"]
    far = effects_spec(
        [*EFFECTS, Point("far", 830.0, 830.0, 830.0, "slower")], "%"
    )["layer"][-1]["encoding"]["x"]  # fmt: skip
    assert "type" not in near["scale"]
    assert far["scale"]["type"] == "symlog"
    assert near["axis"]["values"] == [-10.0, -5.0, 0.0, 5.0, 10.0]
    for axis in (near["axis"]["values"], far["axis"]["values"]):
        assert axis == sorted(axis)
        assert 0 in axis


def test_every_layout_is_in_a_bin() -> None:
    spec = spreads_spec(SPREADS, "misses")
    for row, spread in zip(spec["vconcat"], SPREADS, strict=True):
        steps = row["layer"][0]["data"]["values"]
        assert len(steps) == BINS + 1
        assert sum(step["n"] for step in steps[:-1]) == len(spread.draws)
        assert row["layer"][1]["data"]["values"] == [{"x": spread.shipped}]


def test_layouts_that_are_all_alike_are_drawn() -> None:
    assert "<svg" in spreads_svg(Spread("one", (5.0, 5.0), 5.0, "base"))


@pytest.mark.parametrize("drawn", [effects_svg, lambda: spreads_svg(*SPREADS)], ids=["e", "s"])
def test_the_svg_suits_a_page(drawn: Callable[[], str]) -> None:
    svg = drawn()
    assert svg.startswith("<svg viewBox=")
    assert 'aria-hidden="true"' in svg
    for silent in ("<script", "style=", "role=", "aria-label", "href", "id=", "font-family"):
        assert silent not in svg
    assert "f-" in svg


def test_colours_are_the_styles() -> None:
    svg = spreads_svg(*SPREADS)
    assert 'class="f-base"' in svg
    assert 'class="f-other"' in svg
    assert 'class="s-ink"' in svg
    assert "#0b5fc0" not in svg


def test_what_is_no_chart_is_refused() -> None:
    with pytest.raises(ValueError, match="no chart"):
        page_svg("<svg")
