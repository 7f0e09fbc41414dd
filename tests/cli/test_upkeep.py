# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta check`, `prune` and `backup`, and the limit on the cache."""

import os
from pathlib import Path
from typing import Any

import pytest

from kdelta.cli.main import ended
from kdelta.host.cache import (
    BUILT_PREFIX,
    LIMIT_SETTING,
    keep_limit,
    keep_snapshots,
    limit_bytes,
    usage,
)
from kdelta.host.command import quiet
from kdelta.host.dirs import cache_dir
from kdelta.host.in_use import release, use
from kdelta.host.lock import fill_once
from kdelta.spec.run import RunStatus
from kdelta.store.store import Store
from tests.cli.captured import Captured
from tests.store.test_store import COUNTS, new, study


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KDELTA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("KDELTA_CACHE_GIB", raising=False)


def made(name: str, used: float = 1.0, kind: str = "native") -> Path:
    def fill(partial: Path) -> None:
        (partial / "a").write_bytes(b"x" * 100_000)

    path = fill_once(cache_dir(kind) / name, "making", quiet, fill)
    release(path)
    os.utime(path, (used, used))
    return path


def fill_store(folder: Path) -> None:
    """A run that a study refers to, and one that none does."""
    with Store.open(folder) as store:
        for key in ("a", "b"):
            store.finish_run(store.start_run(new(key)), RunStatus.OK, counts=COUNTS)
        report = f'{{"id":"{store.runs()[1].id}"}}'
        store.keep_study(study("?", store.put(report.encode())))


def test_check_answers_by_its_exit_code(own_data: Path, capsys: Captured) -> None:
    fill_store(own_data)
    path = made("a")
    assert ended(["check"]) == 0
    assert capsys.readouterr().out == "all is whole\n"
    (path / "a").write_bytes(b"")
    assert ended(["check"]) == 3
    out = capsys.readouterr().out
    assert out.startswith(f"damaged    {path}: a is not what was made\n")
    assert out.endswith("1 damaged: kdelta check --repair takes them out of use\n")
    assert ended(["check", "--repair"]) == 0
    assert ended(["check"]) == 0


def test_prune_removes_what_was_used_longest_ago(capsys: Captured) -> None:
    old, used, young = made("old"), made("used"), made("young", 2.0)
    assert use(used)
    os.utime(used, (1, 1))
    assert ended(["prune", "--cache", "0.00015", "--dry-run"]) == 0
    assert "compiled part native/old" in capsys.readouterr().out
    assert old.exists()
    assert ended(["prune", "--cache", "0.00020"]) == 0
    assert (old.exists(), used.exists(), young.exists()) == (False, True, True)
    assert ended(["prune", "--older", "1"]) == 0
    assert (used.exists(), young.exists()) == (True, False)
    assert sorted(path.name for path in cache_dir("native").iterdir()) == ["used", "used.manifest"]
    release(used)


def test_limit_removes_snapshots_first_and_built_kernels_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts = {
        "kernel": made(f"{BUILT_PREFIX}a", 1.0, "kernels"),
        "part": made("a", 2.0),
        "snapshot": made("a", 3.0, "snapshots"),
    }
    left = []
    for limit in ("0.00030", "0.00020", "0.00010", "0"):
        monkeypatch.setenv(LIMIT_SETTING, limit)
        keep_limit()
        left.append([name for name, path in parts.items() if path.exists()])
    assert left == [["kernel", "part", "snapshot"], ["kernel", "part"], ["kernel"], []]


def test_folders_that_vanish_while_the_cache_is_measured_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made("stays")
    gone, scan = made("vanishes"), os.scandir
    tree = cache_dir("trees") / "linux"
    tree.mkdir()

    def scandir(path: str) -> Any:
        if str(path).endswith((gone.name, tree.name)):
            raise FileNotFoundError(path)
        return scan(path)

    monkeypatch.setattr("os.scandir", scandir)
    assert {one.path.name for one in usage()} >= {"stays"}
    keep_limit()


def test_snapshots_keep_to_their_share_and_leave_what_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    part = made("a", 0.0)
    oldest, older, young = (made(f"{age}", age, "snapshots") for age in (1.0, 2.0, 3.0))
    monkeypatch.setenv(LIMIT_SETTING, "0.0004")
    keep_snapshots()
    assert not oldest.exists()
    assert use(older)
    monkeypatch.setenv(LIMIT_SETTING, "0.0001")
    keep_snapshots()
    release(older)
    assert (part.exists(), older.exists(), young.exists()) == (True, True, False)


def test_prune_leaves_runs_and_studies_unless_asked(own_data: Path, capsys: Captured) -> None:
    fill_store(own_data)
    with Store.open(own_data) as store:
        store.put(b"an orphan")
        free, named = store.runs()
    assert ended(["prune"]) == 0
    assert "removed 0 runs and studies, and 1 blobs" in capsys.readouterr().out
    assert ended(["prune", "--runs", "--dry-run"]) == 0
    assert f"would remove run {free.id}" in capsys.readouterr().out
    assert ended(["prune", "--runs", "--older", "1"]) == 0
    with Store.open(own_data) as store:
        assert store.runs() == [free, named]
    assert ended(["prune", "--runs"]) == 0
    with Store.open(own_data) as store:
        assert store.runs() == [named]
    assert ended(["prune", "--studies"]) == 2
    assert "kdelta prune --studies --older 90" in capsys.readouterr().err
    assert ended(["prune", "--runs", "--studies", "--older", "0"]) == 0
    with Store.open(own_data) as store:
        assert (store.runs(), store.studies()) == ([], [])
    assert list(own_data.glob("blobs/*/*")) == []


def test_backup_is_a_store(
    own_data: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ended(["backup", str(tmp_path / "b")]) == 2
    fill_store(own_data)
    assert ended(["backup", str(tmp_path / "b")]) == 0
    assert "3 runs and studies are in" in capsys.readouterr().out
    assert ended(["backup", str(tmp_path / "b")]) == 2
    assert "is there already" in capsys.readouterr().err
    assert ended(["runs"]) == 0
    runs = capsys.readouterr().out
    monkeypatch.setenv("KDELTA_DATA_DIR", str(tmp_path / "b"))
    assert ended(["check"]) == 0
    capsys.readouterr()
    assert ended(["runs"]) == 0
    assert capsys.readouterr().out == runs


def test_limit_of_the_defaults_file_holds(own_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = own_data / "defaults.toml"
    path.write_text("[prune]\ncache = 3\n")
    monkeypatch.setenv("KDELTA_DEFAULTS", str(path))
    monkeypatch.setenv("KDELTA_CACHE_GIB", "")
    monkeypatch.delenv("KDELTA_CACHE_GIB")
    ended(["build"])  # which names no kernel
    assert limit_bytes() == 3 << 30


def test_name_with_an_end_of_line_is_in_one_line(own_data: Path, capsys: Captured) -> None:
    assert own_data
    (cache_dir("guests") / "x\ndamaged.partial").write_bytes(b"")
    assert ended(["check"]) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert "x\\ndamaged.partial: a killed process left it" in first
    assert last.startswith("all is whole")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["prune", "--cache", "1e300"], "--cache"),
        (["prune", "--cache", "inf"], "--cache"),
        (["backup", "~nosuchuser/x"], "there is no such user"),
        (["backup", "{}/x.partial"], "or left over"),
        (["backup", "{}/blobs/x"], "part of the store"),
        (
            ["report", "last", "--output", "{}/store.db", "--format", "text"],
            "nothing else is written there",
        ),
        (["bisect", "-C", "~nosuchuser/x", "a..b"], "there is no such user"),
    ],
)
def test_slip_removes_and_writes_nothing(
    own_data: Path, capsys: Captured, words: list[str], why: str
) -> None:
    fill_store(own_data)
    made("a")
    before = sorted(own_data.rglob("*"))
    assert ended([word.format(own_data) for word in words]) == 2
    assert why in capsys.readouterr().err
    assert sorted(own_data.rglob("*")) == before
    with Store.open(own_data) as store:
        assert len(store.runs()) == 2


def test_backup_to_a_link_that_leads_nowhere_is_a_slip(own_data: Path, tmp_path: Path) -> None:
    fill_store(own_data)
    (tmp_path / "link").symlink_to("nowhere")
    assert ended(["backup", str(tmp_path / "link")]) == 2


def test_what_lies_beyond_a_link_in_the_cache_stays(tmp_path: Path) -> None:
    own = tmp_path / "own"
    for name in ("e.partial", "x.gone.partial", "native-q", "run-abc", "old"):
        (own / name).mkdir(parents=True)
        (own / name / "file").write_text("of the user")
    (own / "y.manifest").write_text("of the user")
    os.utime(own / "old", (1, 1))
    for name in ("damaged", "work", "logs"):
        (cache_dir() / name).symlink_to(own)
    cache_dir("headers")
    (cache_dir("headers") / "l").symlink_to(own)
    path = made("q")
    (path / "a").write_bytes(b"")
    before = {path: path.is_dir() or path.read_bytes() for path in own.rglob("*")}
    assert ended(["check", "--repair"]) == 0
    after = {path: path.is_dir() or path.read_bytes() for path in own.rglob("*")}
    assert {path: after.get(path) for path in before} == before
    assert not path.exists()


def test_loop_of_links_is_a_slip(own_data: Path, tmp_path: Path, capsys: Captured) -> None:
    fill_store(own_data)
    (tmp_path / "loop").symlink_to("loop")
    assert ended(["backup", str(tmp_path / "loop/x")]) == 3
    assert ended(["report", "x", "--output", str(tmp_path / "loop"), "--format", "text"]) == 2
    assert "bug" not in capsys.readouterr().err


def test_linked_folder_was_used_when_it_says(tmp_path: Path) -> None:
    path = made("a", used=2.0)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert [one.used for one in usage()] == [2.0]
