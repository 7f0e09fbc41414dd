# SPDX-License-Identifier: GPL-2.0-or-later
"""Colours of verdicts: on a terminal, and nowhere else."""

import io
import re

import pytest

from kdelta.cli.colours import coloured, emit_report

TEXT = "2 slower, 1 faster, 1 unresolved. Slower by most: getppid +1.9% (+3 make_slower, x.faster)"
MARKS = re.compile(r"\x1b\[(\d+)m(.*?)\x1b\[0m")


class Stdout(io.StringIO):
    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


def printed(monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> str:
    stdout = Stdout(terminal=terminal)
    monkeypatch.setattr("sys.stdout", stdout)
    emit_report(TEXT)
    return stdout.getvalue()


@pytest.fixture(autouse=True)
def _usual_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


def test_verdicts_are_coloured_and_names_are_not() -> None:
    found = [("31", "slower"), ("32", "faster"), ("33", "unresolved"), ("31", "Slower")]
    assert MARKS.findall(coloured(TEXT)) == found
    assert MARKS.sub(r"\2", coloured(TEXT)) == TEXT
    assert coloured("same: not slower in what is counted") == "same: not slower in what is counted"


def test_a_terminal_gets_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    assert printed(monkeypatch, terminal=True) == coloured(TEXT)


def test_a_pipe_gets_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    assert printed(monkeypatch, terminal=False) == TEXT


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_terminal_that_wants_none_gets_no_colours(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert printed(monkeypatch, terminal=True) == TEXT
