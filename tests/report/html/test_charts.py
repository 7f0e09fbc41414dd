# SPDX-License-Identifier: GPL-2.0-or-later
"""Charts: which figures are where, how they are described, and that what is drawn suits a page."""

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.report.document import Chart, Document, Made, Point, Section, Spread
from kdelta.report.html.charts import (
    BINS,
    RowPlot,
    effects_plot,
    history_plot,
    plot_of,
    spreads_plot,
)
from kdelta.report.html.page import page_of

EFFECTS = (
    Point("read</text><script>alert(1)</script>", 12.0, 10.0, 14.0, "slower"),
    Point("a & b\u2028c", -3.0, -4.0, -2.0, "faster"),
)
FAR = Point("far", 830.0, 830.0, 830.0, "slower")
SPREADS = (
    Spread("base", tuple(float(n % 17) for n in range(128)), 16.0, "base"),
    Spread("other", tuple(float(n % 7) for n in range(128)), 0.5, "other"),
)
FIGURES = st.floats(-1e5, 1e5).map(lambda value: round(value, 2))


def drawn(chart: Chart) -> ET.Element:
    """The figure on a page that has this chart."""
    made = Made("compare", "?", "kdelta", "0", 0.0)
    page = page_of(Document("", made, (), (), (Section("x", "x", (chart,)),), ()), "")
    return ET.fromstring(page[page.index("<figure") : page.index("</figure>") + len("</figure>")])


def of_effects(*points: Point) -> Chart:
    return Chart("effects", points, "% of base", "caption", "description <b>")


def test_effects_are_in_order_with_their_figures() -> None:
    plot = effects_plot(EFFECTS, "% of base")
    assert [one.name for one in plot.marks] == [one.name for one in EFFECTS]
    assert [one.text for one in plot.marks] == ["+12%", "-3.0%"]
    assert plot.marks[1].tip.endswith(": -3.0%, -4.00% to -2.00%")
    assert [one.left for one in plot.marks] == [False, True]
    # From -4 to 14 on an even scale.
    assert [plot.marks[0].low, plot.marks[0].at] == pytest.approx(
        [100 * 14 / 18, 100 * 16 / 18], abs=1e-3
    )
    assert plot.zero == pytest.approx(100 * 4 / 18, abs=1e-3)


def test_far_effects_get_decades_that_the_axis_names() -> None:
    near, far = (effects_plot(found, "%") for found in (EFFECTS, (*EFFECTS, FAR)))
    assert near.unit == "%"
    assert far.unit == "%, logarithmic scale"
    assert [one.text for one in far.ticks if one.text][:4] == ["-3", "-1", "0", "+1"]


@given(st.lists(st.tuples(FIGURES, FIGURES, FIGURES), min_size=1, max_size=50))
def test_places_of_any_effects_are_in_the_plot_and_in_order(
    figures: list[tuple[float, float, float]],
) -> None:
    points = [
        Point(str(at), value, low, high, "same")
        for at, (low, value, high) in enumerate(map(sorted, figures))
    ]
    for plot in (effects_plot(points, "%"), history_plot(points, "level")):
        for one in plot.marks:
            assert -0.001 <= one.low <= one.at <= one.high <= 100.001
        by_value = sorted(zip(points, plot.marks, strict=True), key=lambda pair: pair[0].value)
        places = [mark.at for _, mark in by_value]
        assert places == sorted(places)
        ticks = [one.at for one in plot.ticks]
        assert ticks == sorted(ticks)
        assert sum(one.text == "0" for one in plot.ticks) == 1 or not isinstance(plot.zero, float)


def test_labels_of_an_axis_are_apart() -> None:
    plot = effects_plot((*EFFECTS, FAR), "%")
    shown = [one.at for one in plot.ticks if one.text]
    on_phones = [one.at for one in plot.ticks if one.text and not one.wide]
    assert len(on_phones) < len(shown)
    assert min(b - a for a, b in pairwise(on_phones)) > 15
    assert min(b - a for a, b in pairwise(shown)) > 5


def test_history_of_kernels_that_are_alike_is_not_blown_up() -> None:
    plot = history_plot([Point(name, value, value, value, "same")
                         for name, value in (("a", 100.0), ("b", 100.001))], "level")  # fmt: skip
    assert plot.marks[1].at - plot.marks[0].at < 1
    assert len(plot.steps) == 1


def test_every_layout_is_in_a_bin() -> None:
    plot = spreads_plot(SPREADS, "misses")
    for one, spread in zip(plot.histograms, SPREADS, strict=True):
        assert len(one.heights) == BINS
        assert max(one.heights) == 100
        low, high = 0.0, 16.0
        counts = [0] * BINS
        for draw in spread.draws:
            counts[min(BINS - 1, int(BINS * (draw - low) / (high - low)))] += 1
        assert [round(height * max(counts) / 100) for height in one.heights] == counts
        assert one.as_linked == pytest.approx(100 * spread.as_linked / 16)
    assert plot.histograms[0].text == "as linked 16"


def test_layouts_that_are_all_alike_are_drawn() -> None:
    plot = spreads_plot([Spread("one", (5.0, 5.0), 5.0, "base")], "misses")
    assert plot.histograms[0].as_linked == 50


@pytest.mark.parametrize(
    "chart",
    [of_effects(*EFFECTS), Chart("spreads", SPREADS, "misses", "caption", "description <b>")],
)
def test_a_chart_is_named_for_who_cannot_see_it_and_has_nothing_but_shapes(chart: Chart) -> None:
    figure = drawn(chart)
    (picture,) = figure.findall(".//*[@role='img']")
    assert picture.attrib["aria-label"] == "description <b>"
    assert figure.findtext("figcaption") == "caption"
    tags = {one.tag for one in figure.iter()}
    assert tags <= {"figure", "div", "ul", "li", "p", "figcaption", "svg", "g", "title", "rect",
                    "line", "circle", "path", "text"}  # fmt: skip
    for one in figure.iter():
        assert not {"style", "href", "id", "fill", "stroke", "font-family"} & one.attrib.keys()


def test_each_row_has_its_figure_and_a_tip_with_its_whole_name() -> None:
    figure = drawn(of_effects(*EFFECTS))
    assert [one.text for one in figure.iter("li")] == [one.name for one in EFFECTS]
    assert [one.text for one in figure.iter("title")] == [
        "read</text><script>alert(1)</script>: +12\u202f%, +10.0\u202f% to +14.0\u202f%",
        "a & b\u2028c: \u22123.0\u202f%, \u22124.00\u202f% to \u22122.00\u202f%",
    ]
    texts = [one.text for one in figure.iter("text") if one.get("class") == "figure"]
    assert texts == ["+12\u202f%", "\u22123.0\u202f%"]
    assert [one.get("class") for one in figure.iter("circle")] == ["f-slower", "f-faster"]


def test_places_along_a_chart_are_per_cent_so_that_it_is_as_wide_as_its_page() -> None:
    for chart in (of_effects(*EFFECTS), Chart("spreads", SPREADS, "misses", "", "")):
        svg = next(drawn(chart).iter("svg"))
        assert "viewBox" not in svg.attrib
        for one in svg.iter():
            for name in ("x", "x1", "x2", "cx", "width"):
                if name in one.attrib:
                    assert re.fullmatch(r"[\d.]+%", one.attrib[name]), one.attrib


def test_the_shape_of_a_chart_says_how_it_is_drawn() -> None:
    found = plot_of(Chart("history", EFFECTS, "level", "", ""))
    assert isinstance(found, RowPlot)
    assert found.joined
