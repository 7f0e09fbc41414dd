# SPDX-License-Identifier: GPL-2.0-or-later
"""Misses of data in the reports of `compare` and `layout`."""

import re

import msgspec

from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.cycles.placement_model import Bounds, ComparedEnsembles, Draws, PlacementEffect
from kdelta.studies.compare.model import CompareReport, comparison
from kdelta.studies.documents import document_text
from tests.report.decoded import decoded
from tests.report.example_cycles import cycles_of, with_cycles, with_effects
from tests.report.example_layout import layout_report
from tests.report.shown import shown
from tests.report.test_text import compare_text, fits_a_mail

REGION = "open-close"


def _same(base: float, other: float) -> ComparedEnsembles:
    sides = [Draws(one, one, one, one, one, None) for one in (base, other)]
    diff = other - base
    return ComparedEnsembles(sides[0], sides[1], Bounds(diff, diff, diff))


def _with_data(report: CompareReport, cycles: Interval | None) -> CompareReport:
    def known(effect: PlacementEffect) -> PlacementEffect:
        if effect.region != REGION:
            return effect
        data = {"l1d": _same(12.5, 20), "l1d-store": _same(3, 3), "dtlb": _same(0, 0)}
        return msgspec.structs.replace(effect, data=data, data_cycles=cycles)

    return with_effects(report, map(known, cycles_of(report).placements.values()))


def test_a_comparison_has_them_below_those_of_code() -> None:
    text = compare_text(_with_data(with_cycles(), Interval(0, 90)))
    fits_a_mail(text)
    rows = dict(re.findall(rf"^{REGION} +(.*? misses) +(\d.*)$", text, re.MULTILINE))
    assert list(rows) == ["l1i misses", "l1d misses", "l1d-store misses"]
    assert rows["l1d misses"].split() == ["12.50", "20"]
    assert rows["l1d-store misses"].split() == ["3", "3"]
    flat = " ".join(text.split())
    assert "of the effect, what data misses in any layout: 0 to 90 model cycles" in flat


def test_what_was_not_recorded_is_not_there() -> None:
    text = compare_text(with_cycles())
    assert "data misses in any layout" not in " ".join(text.split())
    assert "l1d" not in text


def test_json_has_them() -> None:
    def found(report: CompareReport) -> dict[str, object]:
        document = decoded(document_text(comparison([report]), "0.1.0"))
        (other,) = document["machines"][0]["others"]
        (one,) = [e for e in other["measured"][0]["effects"] if e["region"] == REGION]
        return dict(one["detail"])

    plain = found(with_cycles())
    assert (plain["data"], plain["data_cycles"]) == ({}, None)
    one = found(_with_data(with_cycles(), Interval(0, 90)))
    assert one["data_cycles"] == {"low": 0, "high": 90}
    assert one["data"]["l1d"]["effect"] == {"value": 7.5, "low": 7.5, "high": 7.5}  # type: ignore[index]


def test_a_layouts_report_has_one_figure_a_kind() -> None:
    whole = layout_report()
    first, *others = whole.regions
    known = {"l1d": 40.25, "l1d-store": 0.0, "stlb-store": 2.0}
    regions = (msgspec.structs.replace(first, data=known), *others)
    report = msgspec.structs.replace(whole, regions=regions)
    text = shown("layout", report)
    fits_a_mail(text)
    at = text.index("Misses an iteration, the same in all layouts of code")
    lines = text[at:].splitlines()
    assert lines[1].split() == ["operation", "l1d", "stlb", "st."]
    assert lines[2].split()[1:] == ["40.25", "2"]
    assert "None in any operation: l1d st.." in lines
    document = decoded(document_text(report, "0.1.0"))
    assert document["regions"][0]["data"] == known
    assert "Misses of data" not in shown("layout", whole)
