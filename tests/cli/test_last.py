# SPDX-License-Identifier: GPL-2.0-or-later
"""`last` is what was asked for last: made, from the store, or refused; a slip changes nothing."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kdelta.lab.lab import Lab
from kdelta.lab.progress import Silent
from kdelta.lab.wanted import WantedRun
from kdelta.spec.errors import LabError, UserError
from kdelta.store.store import Store
from tests.cli.captured import failed, stored, without_head
from tests.cli.studies import Captured, Studies, kdelta
from tests.report.example import base_counts

COMPARE = ("compare", "image:a", "image:b")
pytestmark = pytest.mark.usefixtures("studies")


def reported(capsys: Captured) -> str:
    """The first line that a report begins with."""
    assert kdelta("report") == 0
    return capsys.readouterr().out.partition("\n")[0]


def compared(capsys: Captured) -> str:
    assert kdelta(*COMPARE) == 0
    return capsys.readouterr().out.partition("\n")[0]


def refuse(monkeypatch: pytest.MonkeyPatch, error: BaseException, *, understood: bool) -> None:
    async def study(_request: object, lab: Lab, *_: object) -> None:
        lab.store.is_understood = understood
        raise error

    monkeypatch.setattr("kdelta.cli.compare.run_compare", study)


def test_study_prints_its_id_and_each_form_of_its_report_has_it(capsys: Captured) -> None:
    head = compared(capsys)
    word, name = head.partition(",")[0].split()
    assert word == "study"
    assert reported(capsys) == head
    for form in ("mail", "html", "json", "ktap", "junit", "markdown"):
        assert kdelta("report", name, "--format", form) == 0
        shown = capsys.readouterr().out
        assert name in shown[: shown.index(name) + 12], form
    assert kdelta("show", name) == 0
    assert without_head(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("error", "understood"),
    [
        (UserError("the kernels are no match"), True),
        (ExceptionGroup("runs", [UserError("the kernels are no match")]), True),
        (LabError("the kernels are no match"), False),
    ],
)
def test_refused_study_is_the_last(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch, error: Exception, understood: bool
) -> None:
    compared(capsys)
    refuse(monkeypatch, error, understood=understood)
    assert kdelta(*COMPARE) != 0
    capsys.readouterr()
    words = ["asked for last was refused", "the kernels are no match", "kdelta compare image:a"]
    for command in (["report"], ["report", "last"], ["show"], ["profile", "last"]):
        failed(command, words, capsys)


def test_interrupted_study_is_the_last(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    compared(capsys)
    refuse(monkeypatch, KeyboardInterrupt(), understood=True)
    assert kdelta(*COMPARE) == 130
    capsys.readouterr()
    failed(["report"], ["asked for last was refused", "interrupted"], capsys)


def test_slip_changes_nothing(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    head = compared(capsys)
    assert kdelta("compare", "image:a") == 2
    refuse(monkeypatch, UserError("no such operation"), understood=False)
    assert kdelta(*COMPARE) == 2
    capsys.readouterr()
    assert reported(capsys) == head


def test_log_that_failed_is_not_the_last(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    head = compared(capsys)

    def failing(*_: object) -> None:
        raise LabError("reading a repository: Input/output error")

    monkeypatch.setattr("kdelta.cli.log.run_history", failing)
    failed(["log"], ["reading a repository"], capsys, 3)
    assert reported(capsys) == head


def test_run_that_is_answered_from_the_store_is_the_last(own_data: Path, capsys: Captured) -> None:
    first, second = (stored(own_data, base_counts(0), workload=name) for name in ("one", "two"))
    with Store.open(own_data) as store:
        assert store.run("last") == second
        work = SimpleNamespace(counted=lambda counts: counts)
        wanted = SimpleNamespace(key=first.key, index=0, step="run", work=work)
        lab = Lab(store, Silent())
        store.find_run = lambda _: first  # type: ignore[assignment]
        (found,) = asyncio.run(lab._runs_of(cast("list[WantedRun]", [wanted])))
        assert found.stored
        store.enter_last()
        assert store.run("last") == first
        assert store.study_or_run("last") == first
    assert reported(capsys).startswith(f"run {first.id}, ")


def test_last_that_was_removed_is_the_latest_that_is_there(
    capsys: Captured, own_data: Path, studies: Studies
) -> None:
    assert not studies.asked
    first = compared(capsys)
    second = compared(capsys)
    assert kdelta("rm", second.split()[1].rstrip(",")) == 0
    capsys.readouterr()
    assert reported(capsys) == first
    with Store.open(own_data) as store:
        assert cast("Any", store.study_or_run("last")).id in first


def test_nothing_older_is_the_last_where_there_is_no_space_for_it(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = compared(capsys)

    def full(path: Path, _content: object) -> None:
        raise LabError(f"writing {path}: No space left on device")

    refuse(monkeypatch, LabError("writing a blob: No space left on device"), understood=True)
    with monkeypatch.context() as patch:
        patch.setattr("kdelta.store.last.write_json", full)
        assert kdelta(*COMPARE) == 3
    capsys.readouterr()
    for command in (["report"], ["show", "last"], ["profile", "last"]):
        failed(command, ["not known what was asked for last", "kdelta runs"], capsys)
    assert kdelta("report", head.split()[1].rstrip(",")) == 0
