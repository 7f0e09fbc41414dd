# SPDX-License-Identifier: GPL-2.0-or-later
"""`--html FILE`: refused before anything runs if it cannot be written; nothing is lost."""

from pathlib import Path

import pytest

from kdelta.cli import main as cli
from kdelta.spec.errors import LabError
from kdelta.store.store import Store
from tests.cli.captured import without_head
from tests.cli.studies import Captured, Studies

COMPARE = ("compare", "image:a b", "image:c", "--no-flame", "--explain", "1")


def test_a_page_is_written_besides_what_is_printed(
    studies: Studies, capsys: Captured, tmp_path: Path
) -> None:
    file = tmp_path / "a page.html"
    assert cli.ended([*COMPARE, "--html", str(file)]) == 0
    captured = capsys.readouterr()
    assert without_head(captured.out).startswith("Linux 6.1.0 against itself, ")
    assert str(file) in captured.err
    text = file.read_text("utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert "kdelta compare &#39;image:a b&#39; image:c" in text
    assert studies.asked
    assert list(tmp_path.iterdir()) == [file], "nothing else is left there"


def test_a_later_report_is_the_same_page(
    studies: Studies, capsys: Captured, tmp_path: Path
) -> None:
    first, later = tmp_path / "first.html", tmp_path / "later.html"
    assert cli.ended([*COMPARE, "--html", str(first)]) == 0
    assert cli.ended(["report", "--output", str(later)]) == 0
    assert later.read_text() == first.read_text()
    assert capsys.readouterr().err.count(".html: html") == 2
    assert studies.asked


@pytest.mark.parametrize("kind", ["no folder", "a folder", "under a file", "not writable"])
def test_what_cannot_be_written_is_refused_before_anything_runs(
    studies: Studies, capsys: Captured, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "file").touch()
    path, said = {
        "no folder": (tmp_path / "none" / "x.html", "there is no folder"),
        "a folder": (tmp_path, "is a folder"),
        "under a file": (tmp_path / "file" / "x.html", "there is no folder"),
        # Root may write everywhere, but nobody may here.
        "not writable": (Path("/proc/x.html"), "nothing can be written to /proc"),
    }[kind]
    assert cli.ended([*COMPARE, "--html", str(path)]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert "hint: " in captured.err
    assert captured.out == ""
    assert not studies.asked


@pytest.mark.parametrize(
    "command", ["compare", "gate", "layout", "place", "ablate", "bisect", "series", "run", "show"]
)
def test_every_study_takes_it(capsys: Captured, command: str) -> None:
    assert cli.ended([command, "--help"]) == 0
    assert "--html FILE" in capsys.readouterr().out


def test_a_page_that_fails_at_the_end_loses_nothing(
    studies: Studies,
    capsys: Captured,
    tmp_path: Path,
    own_data: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(_path: Path, _content: bytes) -> None:
        raise LabError("writing: No space left on device", "free some space")

    file = tmp_path / "page.html"
    file.write_text("an older one")
    monkeypatch.setattr("kdelta.cli.publish.save", full)
    assert cli.ended([*COMPARE, "--html", str(file)]) == 3
    captured = capsys.readouterr()
    assert "No space left" in captured.err
    assert without_head(captured.out).startswith("Linux 6.1.0 against itself, ")
    assert file.read_text() == "an older one"
    with Store.open(own_data) as store:
        assert len(store.studies()) == 1
    assert studies.asked
