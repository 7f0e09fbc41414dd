# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta check`, `prune` and `backup`, and the limit on the cache."""

import os
from pathlib import Path

import pytest

from kdelta.cli.main import ended
from kdelta.host.cache import limit_bytes
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


def made(name: str, used: float = 1.0) -> Path:
    def fill(partial: Path) -> None:
        (partial / "a").write_bytes(b"x" * 100_000)

    path = fill_once(cache_dir("native") / name, "making", quiet, fill)
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
