# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta layout` as text and as JSON."""

import re

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.infer.sensitivity import distribution
from kdelta.report.cut import cut_note, figure_text, part_text
from kdelta.report.cut_model import CutMisses, CutRegion
from kdelta.report.layout_json import JsonLayout, layout_json
from kdelta.report.layout_text import histogram, layout_text
from tests.report.example import report
from tests.report.example_layout import LAYOUTS, layout_report
from tests.report.test_json import decoded
from tests.report.test_text import against_golden, fits_a_mail


def test_golden() -> None:
    against_golden("layout.txt", layout_text(layout_report()))


def test_how_much_is_taken_apart() -> None:
    assert layout_text(layout_report(), regions=1).count("collisions as shipped") == 1
    text = layout_text(layout_report(), collisions=1)
    assert "in 29 more pairs" in text
    assert "memset_erms" not in text
    assert "collisions" not in layout_text(layout_report(), collisions=0)


def test_collisions_add_up_to_all_of_them() -> None:
    text = layout_text(layout_report(), regions=5, collisions=2)
    block = text[text.index("\nopen-close\n---") :]
    total = re.search(r"collisions as shipped, ([\d.]+) misses", block)
    assert total
    rows = re.findall(r"^ +([\d.]+) (?: +\d+\.\.\d+ | +in \d+ more)", block, re.MULTILINE)[:3]
    assert sum(map(float, rows)) == pytest.approx(float(total[1]))


def test_misses_of_the_l2_have_tables_and_no_alignments() -> None:
    whole = layout_report()
    one = whole.regions[1]
    more = ("l2", "l2_code", "l2_data")
    one = msgspec.structs.replace(
        one,
        misses=one.misses | dict.fromkeys(more, one.misses["l1i"]),
        draws=one.draws | dict.fromkeys(more, one.draws["l1i"]),
    )
    text = layout_text(msgspec.structs.replace(whole, regions=(one,)))
    fits_a_mail(text)
    for title in ("of code and data", "of code", "of data"):
        assert f"\nL2 misses {title}; p: how many" in text
        assert f"\nL2 misses {title} over 64 random layouts\n" in text
    assert text.count("functions aligned to") == 1


def test_a_long_region_is_said_to_have_fewer_layouts() -> None:
    whole = layout_report()
    one, other = whole.regions[1], whole.regions[3]
    few = msgspec.structs.replace(one, draws={kind: row[:17] for kind, row in one.draws.items()})
    text = layout_text(msgspec.structs.replace(whole, regions=(few, other)))
    fits_a_mail(text)
    assert "for their many branches in fewer: open-close in 17; of 161" in " ".join(text.split())
    assert "L1I misses over 17 random layouts\n" in text
    assert f"L1I misses over {LAYOUTS} random layouts\n" in text
    assert whole.orders == f"{LAYOUTS} random orders, seed 1"


def test_with_data_cycles_are_without_misses_of_code_alone() -> None:
    whole = layout_report()
    one = msgspec.structs.replace(whole.regions[1], data={"l1d": 0.5})
    text = layout_text(msgspec.structs.replace(whole, regions=(one,)))
    fits_a_mail(text)
    assert "without misses" not in text
    assert "\noperation             no misses of code            shipped    at stake\n" in text
    assert "no misses of code: those of data, but in the L2, are" in " ".join(text.split())


def test_no_histogram_of_what_hardly_differs() -> None:
    whole = layout_report()
    one = whole.regions[1]
    row = tuple(0.01 + 1e-4 * index for index in range(LAYOUTS))
    one = msgspec.structs.replace(
        one,
        misses=one.misses | {"return": distribution(np.array(row), row[0])},
        draws=one.draws | {"return": row},
    )
    text = layout_text(msgspec.structs.replace(whole, regions=(one,)))
    assert "mispredicted returns; p: how many" in text
    assert "mispredicted returns over" not in text


def test_what_is_not_representative_is_marked_and_said() -> None:
    text = layout_text(layout_report())
    assert "\npipe*  " in text
    assert "\nopen-close  " in text
    assert "strings move by eight bytes; operations: pipe" in text


def test_a_run_that_failed_is_said_and_all_else_left_out() -> None:
    side = msgspec.structs.replace(report().others[0].side)
    failed = msgspec.structs.replace(
        layout_report(), kernel=side, regions=(), executed=0, unlike=(), notes=(), warnings=()
    )
    text = layout_text(failed)
    assert "failed runs" in text
    assert "model cycles an iteration" not in text
    none = msgspec.structs.replace(side, failure="it does not compile", runs=())
    text = layout_text(msgspec.structs.replace(failed, kernel=none))
    assert "no kernel: it does not compile" in text


figures = st.integers(0, 10**9).map(lambda hundredths: hundredths / 100)


@given(st.lists(figures, min_size=1, max_size=200), figures)
def test_a_histogram_has_each_layout_once_and_the_shipped_one(
    draws: list[float], shipped: float
) -> None:
    lines = histogram(draws, shipped)
    fits_a_mail("\n".join(lines))
    counts = [int(line.split()[1]) for line in lines if len(line) > 12]
    assert sum(counts) == len(draws)
    (marked,) = [line for line in lines if "<- shipped" in line]
    assert float(marked.split()[0]) <= shipped * 1.01 + 0.01
    assert len(lines) == (11 if len({*draws, shipped}) > 1 else 1)
    assert max(line.count("#") for line in lines) == 40
    assert all((count > 0) == ("#" in line) for count, line in zip(counts, lines, strict=False))


def test_json_has_it_all() -> None:
    document = decoded(layout_json(layout_report(), "0.1.0"))
    assert document["schema"] == "kdelta.layout/1"
    assert (document["layouts"], document["seed"], document["alignment"]) == (LAYOUTS, 1, 16)
    assert document["cpu"]["guessed"] == ["l1i", "itlb"]
    one = document["regions"][1]
    assert one["name"] == "open-close"
    assert len(one["draws"]["l1i"]) == LAYOUTS
    assert one["misses"]["l1i"]["shipped"] == 140
    assert one["cycles"]["executed"]["low"] <= one["cycles"]["shipped"]["high"]
    assert [row["bytes"] for row in one["aligned"]] == [16, 32, 64]
    assert one["aligned"][2]["same_order"]["l1i"] == 30
    assert one["collisions"][0]["sets"] == [3, 4, 5, 9, 11, 13, 15, 17, 19]
    assert [row["truncated"] for row in document["regions"]] == [False, False, True, False]
    assert document["unlike"][0]["regions"] == ["pipe"]
    assert msgspec.json.decode(layout_json(layout_report(), "1"), type=JsonLayout).notes


def test_a_trace_that_was_cut_off_is_shown_beside_the_whole() -> None:
    """Nothing is 0 that nobody knows."""
    text = layout_text(layout_report())
    assert re.search(r"^fork +0 % +\? +764.50$", text, re.MULTILINE)
    assert not re.search(r"^fork .*0\.00", text, re.MULTILINE)
    document = decoded(layout_json(layout_report(), "0.1.0"))
    assert [one["name"] for one in document["cut"]] == [
        "a-name-that-is-longer-than-its-column",
        "fork",
    ]
    assert document["cut"][1]["kernels"] == {"kernel": {"part": 0.0, "first": None, "whole": 764.5}}
    assert "fork" not in [one["name"] for one in document["regions"]]
    without = msgspec.structs.replace(layout_report(), cut=())
    assert "cut off" not in layout_text(without)


def test_figures_of_what_was_cut_off() -> None:
    """Less than all never reads as all, and nothing that is there as nothing."""
    parts = {0.0: "0", 0.0312: "3.1", 0.5: "50", 0.99999: "99.99"}
    assert {part: part_text(CutMisses(part, None, None)) for part in parts} == parts
    figures = {0.0: "0.00", 0.004: "<0.01", 12.345: "12.35", 1.6e7: "16000000", 1.6e9: "1.60e+09"}
    assert {count: figure_text(count) for count in figures} == figures
    assert figure_text(None) == "?"


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"kernel": CutMisses(0.5, 2, 3)}, ("off: misses are", "50 %", "with 2.00", "has 3.00")),
        ({"other": CutMisses(0.5, 2, None)}, ("off: in other misses", "that nobody counted")),
        ({"base": CutMisses(0, None, 3)}, ("off: in base nothing of it was kept", "has 3.00")),
    ],
)
def test_what_was_cut_off_in_words(found: dict[str, CutMisses], words: tuple[str, ...]) -> None:
    note = cut_note(CutRegion("fork", found))
    assert note.startswith("fork: its trace was cut off")
    assert [word for word in words if word not in note] == []
