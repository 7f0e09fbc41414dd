# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta layout` as text and as JSON."""

import re

import msgspec
import pytest
from reading import read_document

from kdelta.studies.documents import document_text
from kdelta.studies.forms import text as text_of
from tests.report.decoded import decoded
from tests.report.example import report
from tests.report.example_layout import LAYOUTS, layout_report
from tests.report.shown import shown, stored
from tests.report.test_text import fits_a_mail


def printed(**asked: int) -> str:
    """With so many collisions, of so many regions."""
    report = msgspec.structs.replace(stored("layout", layout_report()), shown=asked)
    return text_of(report)


def test_how_much_is_broken_down() -> None:
    title = "Functions that put out each other's lines"
    assert printed().count(title) == 3
    few = printed(explain=1)
    assert few.count(title) == 1
    assert "And 2 more: --explain." in few
    text = printed(collisions=1)
    assert "29 more pairs" in text
    assert "memset_erms" not in text
    assert title not in printed(collisions=0)


def test_collisions_add_up_to_all_of_them() -> None:
    (region,) = [one for one in layout_report().regions if one.name == "open-close"]
    text = printed(collisions=2)
    block = " ".join(text[text.index("\nopen-close: ") :].split())
    block = block[: block.index("with functions aligned")]
    rows = re.findall(r" ([\d.]+) 0 to", block)
    rest = re.findall(r"more pairs ([\d.]+)", block)[0]
    assert len(rows) == 2
    assert sum(map(float, (*rows, rest))) == pytest.approx(region.colliding)


def test_misses_of_the_l2_have_tables_and_no_alignments() -> None:
    whole = layout_report()
    one = whole.regions[1]
    more = ("l2", "l2_code", "l2_data")
    one = msgspec.structs.replace(
        one,
        misses=one.misses | dict.fromkeys(more, one.misses["l1i"]),
        draws=one.draws | dict.fromkeys(more, one.draws["l1i"]),
    )
    text = shown("layout", msgspec.structs.replace(whole, regions=(one,)))
    fits_a_mail(text)
    for title in ("of code and data", "of code", "of data"):
        assert f"\nL2 misses {title} an iteration\n" in text
    assert text.count("with functions aligned otherwise") == 1


def test_a_long_region_is_reported_to_have_fewer_layouts() -> None:
    whole = layout_report()
    one, other = whole.regions[1], whole.regions[3]
    few = msgspec.structs.replace(one, draws={kind: row[:17] for kind, row in one.draws.items()})
    text = shown("layout", msgspec.structs.replace(whole, regions=(few, other)))
    fits_a_mail(text)
    assert "for their many branches in fewer: open-close in 17; of 161" in " ".join(text.split())
    assert whole.orders == f"{LAYOUTS} random orders, seed 1"


def test_with_data_cycles_are_without_misses_of_code_alone() -> None:
    whole = layout_report()
    one = msgspec.structs.replace(whole.regions[1], data={"l1d": 0.5})
    text = shown("layout", msgspec.structs.replace(whole, regions=(one,)))
    fits_a_mail(text)
    assert "without misses" not in text
    assert "\noperation   at stake  percentile  no misses of code" in text
    assert (
        "no misses of code: model cycles an iteration; those of data, but in the L2, are"
        in " ".join(text.split())
    )


def test_what_is_not_representative_is_reported() -> None:
    text = " ".join(shown("layout", layout_report()).split())
    assert "ERMS: strings move by eight bytes kernel pipe" in text


def test_a_run_that_failed_is_reported_and_all_else_left_out() -> None:
    side = msgspec.structs.replace(report().others[0].side)
    failed = msgspec.structs.replace(
        layout_report(), kernel=side, regions=(), executed=0, mismatches=(), notes=(), warnings=()
    )
    text = shown("layout", failed)
    assert "kernel, perturbation 3: workload-failed" in text
    assert "model cycles" not in text
    none = msgspec.structs.replace(side, failure="it does not compile", runs=())
    text = shown("layout", msgspec.structs.replace(failed, kernel=none))
    assert "it does not compile" in text


def test_json_has_it_all() -> None:
    document = decoded(document_text(layout_report(), "0.1.0"))
    assert document["schema"] == "kdelta.layout/2"
    assert (document["layouts"], document["seed"], document["alignment"]) == (LAYOUTS, 1, 16)
    assert document["cpu"]["without_measured_cost"] == ["l1i", "itlb"]
    one = document["regions"][1]
    assert one["name"] == "open-close"
    assert len(one["draws"]["l1i"]) == LAYOUTS
    assert one["misses"]["l1i"]["as_linked"] == 140
    assert one["cycles"]["executed"]["low"] <= one["cycles"]["as_linked"]["high"]
    assert [row["bytes"] for row in one["aligned"]] == [16, 32, 64]
    assert one["aligned"][2]["same_order"]["l1i"] == 30
    assert one["collisions"][0]["sets"] == [3, 4, 5, 9, 11, 13, 15, 17, 19]
    assert document["mismatches"][0]["regions"] == ["pipe"]
    assert read_document(document_text(layout_report(), "1")).notes


def test_a_trace_that_was_cut_off_is_shown_with_the_option() -> None:
    text = " ".join(shown("layout", layout_report()).split())
    assert "- fork-large: not replayed: its trace would need 1.3 GiB: --trace-limit 1.3" in text
    document = decoded(document_text(layout_report(), "0.1.0"))
    assert [(one["name"], one["gib"]) for one in document["cut"]] == [
        ("fork-large", 1.3),
        ("fork", None),
    ]
    assert "fork" not in [one["name"] for one in document["regions"]]
    without = msgspec.structs.replace(layout_report(), cut=())
    assert "not replayed" not in shown("layout", without)
