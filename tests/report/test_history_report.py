# SPDX-License-Identifier: GPL-2.0-or-later
"""The report of a history: what it says, that it adds up, and that it fits a mail."""

import os
import re
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest

from kdelta.infer.effects import Word
from kdelta.report.history_json import JsonHistory, history_json
from kdelta.report.history_text import PLOT, history_text, moved_most, plot
from kdelta.report.html.history_chart import Mark, history_spec
from kdelta.report.outline import Outcome
from kdelta.report.outlines.kinds import outline_of
from tests.report.example_history import series, several, summary, tracked
from tests.report.example_stored import stored

GOLDEN = Path(__file__).parent / "golden"
UPDATE = "KDELTA_UPDATE_GOLDEN"


@pytest.mark.parametrize(
    ("name", "text"),
    [("log.txt", history_text(summary())), ("log-operations.txt", history_text(tracked()))],
)
def test_the_text(name: str, text: str) -> None:
    file = GOLDEN / name
    if os.environ.get(UPDATE):
        file.write_text(text)
    assert text == file.read_text(), f"run the test once with {UPDATE}=1"
    assert max(map(len, text.splitlines())) <= 80
    assert text.isascii()


def test_differences_are_those_of_what_is_printed() -> None:
    rows = [line.split() for line in history_text(tracked()).splitlines()]
    table = rows[next(at for at, row in enumerate(rows) if row[:2] == ["insns", "+-"]) + 1 :][:4]
    figures = [
        Fraction(next(word for word in row if re.fullmatch(r"\d{4}", word))) for row in table
    ]
    diffs = [next((word for word in row if re.fullmatch(r"[+-]\d+", word)), "") for row in table]
    assert diffs == ["", "+300", "+2", "-152"]
    for at in (1, 2, 3):
        assert figures[at - 1] + Fraction(diffs[at]) == figures[at]


def test_steps_are_told_apart_in_a_plot() -> None:
    words = [Word.SAME, Word.SLOWER, Word.PLACEMENT_ONLY, Word.UNRESOLVED]
    lines = list(plot(["a", "b", "c", "d"], [100, 200, 150, None], words))
    assert lines[0].split() == ["100", "200"]
    assert lines[1].split() == ["a", "o" + "." * (PLOT - 1)]
    assert lines[2].split() == ["b", "." * (PLOT - 1) + "*"]
    assert lines[3].split()[1].strip(".") == "p"
    assert lines[4] == "d"


def test_what_hardly_moves_does_not_look_as_if_it_did() -> None:
    lines = list(plot(["a", "b"], [10000, 10001], [Word.SAME, Word.SLOWER]))
    assert lines[2].split()[1].index("*") == 0
    marks = [Mark("a", 10000, 10000, 10000, "same"), Mark("b", 10001, 10001, 10001, "slower")]
    low, high = history_spec(marks, "x")["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert high - low == pytest.approx(100, rel=0.02)


def test_what_moved_most() -> None:
    found = moved_most(series())
    assert [(track.operation, int(part), at) for track, part, at in found] == [
        ("getppid", -25, 1),
        ("open-close", 5, 1),
    ]


def test_the_summary_names_what_moved() -> None:
    text = history_text(summary())
    assert "getppid                400 -> 300 (-25.0%); -25.0% at 2" in text
    assert "1 6.1.0-56-cloud-am~    100.00" in text
    assert "not shown: alone on its machine: image:/x" in text
    assert "and 1 more; -o names one" in history_text(summary(), moved=1)
    assert "2026-01-03 123456789abc +speed.config, 6.12.0" in text
    assert "2026-01-02 (run) 6.1.0-56-cloud-amd64" in text


def test_several_series_are_apart() -> None:
    text = history_text(several())
    assert text.index("series 1 4 kernels") < text.index("series 2 4 kernels")
    assert text.count("priced   zen3") == 1


def test_the_json_has_all() -> None:
    found = msgspec.json.decode(history_json(tracked(), "0.1"), type=JsonHistory)
    assert found.schema == "kdelta.log/1"
    (one,) = found.series
    assert [kernel.dated for kernel in one.kernels] == ["run", "commit", "run", "run"]
    open_close, getppid, new = one.operations
    assert [point.insns.value if point.insns else None for point in new.points] == [
        None,
        None,
        7,
        7,
    ]
    assert [point.path.word if point.path else "" for point in open_close.points] == [
        "",
        "slower",
        "placement only",
        "unresolved",
    ]
    assert open_close.points[1].cycles is not None
    assert open_close.points[1].cycles.relative.low == 0.08
    assert getppid.points[1].path is not None
    assert getppid.points[1].path.effect.value == -100
    assert [total.level for total in one.totals] == [100.0, 90.8, 90.8, 88.7]


def test_its_cases_are_the_last_steps() -> None:
    outline = outline_of(stored("history", summary()))
    (suite,) = outline.suites
    assert [(case.name, case.outcome) for case in suite.cases] == [
        ("open-close", Outcome.UNKNOWN),
        ("getppid", Outcome.OK),
        ("new-one", Outcome.OK),
    ]
    assert outline.short[0].startswith("from 6.1.0-56-cloud-amd64 to 6.13.0 (4 kernels) the path")
    both = outline_of(stored("history", several()))
    assert [one.name for one in both.suites] == [
        "series 1: the last step",
        "series 2: the last step",
    ]
