# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta profile --processes` on a run of the store: as a table, as JSON and as a page."""

from pathlib import Path

import pytest
from reading import read_document

from kdelta.cli import main as cli
from tests.cli.stored_profile import stored
from tests.infer.made_processes import made

Captured = pytest.CaptureFixture[str]


def kdelta(*arguments: str) -> int:
    return cli.ended(arguments)


def test_the_table_the_document_and_the_page_log_the_same(
    own_data: Path, tmp_path: Path, capsys: Captured
) -> None:
    run = stored(own_data, [made()])
    assert kdelta("profile", run.id, "--processes") == 0
    table = capsys.readouterr().out
    assert "make: the kernel executed 81 of 421 instructions (19.2 %)." in table
    file = tmp_path / "page.html"
    assert kdelta("profile", "last", "--processes", "--json", "--html", str(file)) == 0
    shown = capsys.readouterr().out
    document = read_document(shown)
    assert document.run.run.id == run.id
    (region,) = document.regions
    assert region.region == "make"
    assert [(one.program, one.ended, one.user, one.kernel) for one in region.programs] == [
        ("cc1", 0, 300, 60),
        ("sh", 3, 40, 5),
    ]
    assert [(one.program, one.kernel) for one in region.other] == [("kernel", 9)]
    assert region.interrupts == 7
    assert region.idle_ticks is None
    page = file.read_text("utf-8")
    assert "Who executed what in make" in page
    assert "81 of 421 instructions" in page
    assert "kdelta profile last --processes --json --html" in page


def test_a_region_that_the_run_has_not_is_named(own_data: Path, capsys: Captured) -> None:
    stored(own_data, [made()])
    assert kdelta("profile", "last", "--processes", "-o", "mak") == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "the run has no region 'mak'" in shown.err
    assert "it has: make" in shown.err


def test_an_export_has_no_processes(own_data: Path, capsys: Captured) -> None:
    stored(own_data, [made()])
    assert kdelta("profile", "last", "--processes", "--export", "folded") == 2
    assert "--processes" in capsys.readouterr().err
