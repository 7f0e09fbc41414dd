# SPDX-License-Identifier: GPL-2.0-or-later
"""The harness of the proofs: what has a record is not made again, pages have tables of records, and
what a check asserts is printed if it fails.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

import campaign
import msgspec
import pytest
from campaign import Proof, checks, failures, markdown

PAGE = "before\n<!-- all: begin -->\n\nold\n\n<!-- all: end -->\nafter\n"


class Record(msgspec.Struct, frozen=True):
    name: str
    figure: int


def proof(folder: Path, *, figure: int = 1, made: list[str] | None = None) -> Proof[Record]:
    """Trials a, b and c: b is wrong if its figure is 2, c is interrupted if it is 3."""

    def make(names: Sequence[str], options: argparse.Namespace) -> Iterator[Record]:
        for name in names:
            if name == "c" and figure == 3:
                raise KeyboardInterrupt
            (made if made is not None else []).append(name)
            yield Record(name, figure * options.times)

    (folder / "page.md").write_text(PAGE)
    return Proof(
        record=Record,
        file=folder / "records.jsonl",
        trials=lambda _: ("a", "b", "c"),
        make=make,
        wrong=lambda found: ["b: two"] if Record("b", 2) in found else [],
        pages={
            folder / "page.md": {
                "all": lambda found: markdown(("name",), [(one.name,) for one in found])
            }
        },
        sizes={"times": 1},
    )


def run(monkeypatch: pytest.MonkeyPatch, one: Proof[Record], *words: str) -> int:
    monkeypatch.setattr("sys.argv", ["proof", *words])
    return one.main()


def test_trials_with_a_record_are_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        run(monkeypatch, proof(tmp_path, figure=3, made=made))
    assert run(monkeypatch, proof(tmp_path, made=made)) == 0
    assert made == ["a", "b", "c"]
    assert [one.figure for one in proof(tmp_path).records()] == [3, 3, 1]


def test_again_replaces_a_record_and_a_wrong_one_ends_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = proof(tmp_path)
    assert run(monkeypatch, one) == 0
    assert run(monkeypatch, one, "--again", "b", "--times", "2") == 1
    assert [(of.name, of.figure) for of in one.records()] == [("a", 1), ("b", 2), ("c", 1)]
    assert capsys.readouterr().out.endswith("b: two\n")


def test_page_has_the_table_of_all_records_unless_they_are_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = proof(tmp_path)
    run(monkeypatch, one, "--out", str(tmp_path / "elsewhere"))
    assert (tmp_path / "page.md").read_text() == PAGE
    run(monkeypatch, one)
    assert (tmp_path / "page.md").read_text() == PAGE.replace(
        "old", "| name |\n|---|\n| a |\n| b |\n| c |"
    )


def test_trial_that_is_unknown_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match="no trial d; there are a, b, c"):
        run(monkeypatch, proof(tmp_path), "d")


@pytest.mark.parametrize("fault", ["wrong", "missing", "page"])
def test_check_finds_a_wrong_record_a_missing_one_and_another_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], fault: str
) -> None:
    monkeypatch.setattr(campaign, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    one, page = proof(tmp_path / "docs"), tmp_path / "docs" / "page.md"
    run(monkeypatch, one)
    module = ModuleType("module")
    vars(module)["PROOF"] = one
    assert failures(module) == 0
    if fault == "wrong":
        run(monkeypatch, one, "--again", "--times", "2", "b")
    elif fault == "missing":
        one.file.write_bytes(one.file.read_bytes().split(b"\n", 1)[1])
        page.write_text(one.with_tables(page, one.records()))
    else:
        page.write_text(PAGE)
    assert failures(module) == 1
    assert "1 checks, 1 failed" in capsys.readouterr().out


def test_checks_of_records_are_left_out_where_these_are_not_committed(tmp_path: Path) -> None:
    def check_code() -> None: ...

    def check_records(found: object) -> None: ...

    module = ModuleType(__name__)
    vars(module).update(
        PROOF=proof(tmp_path), check_code=check_code, check_records=check_records, other=len
    )
    assert list(checks(module)) == ["check_code"]


def test_each_proof_with_committed_records_is_checked() -> None:
    assert {one.__name__ for one in campaign.modules()} >= {"unsteady", "left_work", "diff"}
