# SPDX-License-Identifier: GPL-2.0-or-later
"""The report of a history: what it says, that it adds up, and that it fits a mail."""

import msgspec
import pytest
from reading import read_document

from kdelta.report.document import Chart, Outcome, Point, Section
from kdelta.report.html.charts import history_plot
from kdelta.report.text import WIDTH, text_of
from kdelta.studies.documents import document_text
from kdelta.studies.forms import text as printed
from kdelta.studies.kinds import document_of
from kdelta.studies.log.document import moved_most
from tests.report.example_history import series, several, summary, tracked
from tests.report.shown import shown, stored, unwrapped


def plotted(rows: list[tuple[str, float, str]]) -> list[str]:
    """The lines of a plot, without its caption and its key."""
    points = tuple(Point(name, value, value, value, tone) for name, value, tone in rows)
    section = Section("x", "x", (Chart("history", points, "x", "caption", "x"),))
    shown = document_of(stored("log", summary()))
    plain = msgspec.structs.replace(
        shown, answers=(), facts=(), sections=(section,), environment=(), notes=()
    )
    lines = text_of(plain).splitlines()
    return lines[lines.index("caption") + 1 : -1]


def test_steps_are_told_apart_in_a_plot() -> None:
    rows = [("a", 100.0, "same"), ("b", 200.0, "slower"), ("c", 150.0, "placement")]
    lines = plotted([*rows, ("d", 150.0, "unresolved")])
    assert lines[0].split() == ["100", "200"]
    dots = WIDTH - 3
    assert lines[1].split() == ["a", "o" + "." * dots]
    assert lines[2].split() == ["b", "." * dots + "*"]
    assert lines[3].split()[1].strip(".") == "p"
    assert lines[4].split()[1].strip(".") == "?"
    assert {len(line) for line in lines} == {WIDTH}


def test_what_hardly_moves_does_not_look_as_if_it_did() -> None:
    lines = plotted([("a", 10000.0, "same"), ("b", 10001.0, "slower")])
    assert lines[2].split()[1].index("*") == 1
    marks = [Point("a", 10000, 10000, 10000, "same"), Point("b", 10001, 10001, 10001, "slower")]
    first, second = history_plot(marks, "x").marks
    assert second.at - first.at == pytest.approx(1, rel=0.02)


def test_what_moved_most() -> None:
    found = moved_most(series())
    assert [(track.operation, int(part), at) for track, part, at in found] == [
        ("getppid", -25, 1),
        ("open-close", 5, 1),
    ]


def test_the_summary_names_what_moved() -> None:
    text = unwrapped("log", summary())
    assert "getppid 400 300 -25.0% -25.0% 2 123456789abc +speed.config" in text
    assert "1 6.1.0-56-cloud-amd64 100.00" in text
    assert "not shown: alone on its machine: image:/x" in text
    assert "2026-01-03 123456789abc +speed.config, 6.12.0" in text
    assert "2026-01-02 (run) 6.1.0-56-cloud-amd64" in text
    one = msgspec.structs.replace(stored("log", summary()), shown={"explain": 1})
    short = " ".join(printed(one).split())
    assert "And 1 more: --explain." in short
    assert "open-close, kernel by kernel" in text
    assert "open-close, kernel by kernel" not in short


def test_several_series_are_apart() -> None:
    text = shown("log", several())
    assert text.index("Series 1: From kernel to kernel") < text.index("Series 2: From kernel")
    assert text.count("priced of series ") == 1


def test_the_json_has_all() -> None:
    found = read_document(document_text(tracked(), "0.1"))
    assert found.schema == "kdelta.log/3"
    (one,) = found.series
    assert [kernel.dated for kernel in one.kernels] == ["run", "commit", "run", "run"]
    open_close, getppid, new = one.tracks
    assert [point.figure.value if point.figure else None for point in new.points] == [
        None,
        None,
        7,
        7,
    ]
    assert [point.step.word if point.step else "" for point in open_close.points] == [
        "",
        "slower",
        "placement only",
        "unresolved",
    ]
    assert open_close.points[1].measured["model cycles"].change.low == 0.08
    assert getppid.points[1].step is not None
    assert getppid.points[1].step.effect.value == -100
    assert [total.level for total in one.totals] == [100.0, 90.8, 90.8, 88.7]


def test_its_cases_are_the_last_steps() -> None:
    document = document_of(stored("log", summary()))
    (suite,) = document.suites
    assert [(case.name, case.outcome) for case in suite.cases] == [
        ("open-close", Outcome.UNKNOWN),
        ("getppid", Outcome.OK),
        ("new-one", Outcome.OK),
    ]
    assert document.sentences[0].startswith("From 6.1.0-56-cloud-amd64 to 6.13.0, over 4 kernels, ")
    both = document_of(stored("log", several()))
    assert [one.name for one in both.suites] == [
        "series 1: the last step",
        "series 2: the last step",
    ]
