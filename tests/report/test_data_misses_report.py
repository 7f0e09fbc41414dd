# SPDX-License-Identifier: GPL-2.0-or-later
"""Misses of data in the reports of `compare` and `layout`."""

import msgspec

from kdelta.infer.ensembles import Interval
from kdelta.infer.placement_model import Bounds, Compared, Draws, PlacementEffect
from kdelta.report.cycles import cycle_lines
from kdelta.report.json import compare_json
from kdelta.report.layout_json import layout_json
from kdelta.report.layout_text import layout_text
from kdelta.report.model import CompareReport
from tests.report.example_cycles import with_cycles
from tests.report.example_layout import layout_report
from tests.report.test_json import decoded
from tests.report.test_text import fits_a_mail

REGION = "open-close"


def _same(base: float, other: float) -> Compared:
    sides = [Draws(one, one, one, one, one, None) for one in (base, other)]
    diff = other - base
    return Compared(sides[0], sides[1], Bounds(diff, diff, diff))


def _with_data(report: CompareReport, cycles: Interval | None) -> CompareReport:
    def known(effect: PlacementEffect) -> PlacementEffect:
        if effect.region != REGION:
            return effect
        data = {"l1d": _same(12.5, 20), "l1d-store": _same(3, 3), "dtlb": _same(0, 0)}
        return msgspec.structs.replace(effect, data=data, data_cycles=cycles)

    (compared,) = report.others
    assert compared.cycles
    effects = tuple(map(known, compared.cycles.effects))
    found = msgspec.structs.replace(compared.cycles, effects=effects)
    return msgspec.structs.replace(
        report, others=(msgspec.structs.replace(compared, cycles=found),)
    )


def _lines(report: CompareReport) -> list[str]:
    (compared,) = report.others
    assert report.cpu
    assert compared.cycles
    return cycle_lines(report.cpu, compared.cycles, ())


def test_a_comparison_has_them_below_those_of_code() -> None:
    lines = _lines(_with_data(with_cycles(), Interval(0, 90)))
    fits_a_mail("\n".join(lines) + "\n")
    begin = next(at for at, line in enumerate(lines) if line.startswith(REGION))
    block = lines[begin + 1 :]
    block = block[: block.index("")]
    rows = {line[:18].strip(): line.split() for line in block}
    assert rows["l1d misses"][2:5] == ["12.50", "20", "+7.50"]
    assert rows["l1d, stores"][2:4] == ["3", "3"]
    assert not any("dtlb" in line for line in block)
    text = " ".join(line.strip() for line in block)
    assert "of the effect, what data misses in any layout: 0 to +90 model cycles" in text
    assert text.index("l1i misses") < text.index("l1d misses")


def test_what_was_not_recorded_is_not_there() -> None:
    assert not any("of data" in line for line in _lines(with_cycles()))


def test_json_has_them_and_without_them_is_as_it_was() -> None:
    def found(report: CompareReport) -> dict[str, object]:
        document = decoded(compare_json([report], "0.1.0"))
        (other,) = document["machines"][0]["others"]
        (one,) = [e for e in other["cycles"]["effects"] if e["region"] == REGION]
        return dict(one)

    plain = found(with_cycles())
    assert not {"data", "data_cycles"} & plain.keys()
    one = found(_with_data(with_cycles(), Interval(0, 90)))
    assert one["data_cycles"] == {"low": 0, "high": 90}
    assert one["data"]["l1d"]["effect"] == {"value": 7.5, "low": 7.5, "high": 7.5}  # type: ignore[index]


def test_a_layouts_report_has_one_figure_a_kind() -> None:
    whole = layout_report()
    first, *others = whole.regions
    known = {"l1d": 40.25, "l1d-store": 0.0, "stlb-store": 2.0}
    regions = (msgspec.structs.replace(first, data=known), *others)
    report = msgspec.structs.replace(whole, regions=regions)
    text = layout_text(report)
    fits_a_mail(text)
    at = text.index("misses of data, the same in all layouts of code")
    lines = text[at:].splitlines()
    assert lines[1].split() == ["operation", "l1d", "stlb", "st."]
    assert lines[2].split()[1:] == ["40.25", "2.00"]
    assert "none in any: l1d st." in lines
    document = decoded(layout_json(report, "0.1.0"))
    assert document["regions"][0]["data"] == known
    assert "data" not in decoded(layout_json(whole, "0.1.0"))["regions"][0]
    assert "misses of data" not in layout_text(whole)
