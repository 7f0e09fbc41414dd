# SPDX-License-Identifier: GPL-2.0-or-later
"""Pipes, folders, loops, devices and sockets in a store: named, waited for by no command."""

from pathlib import Path

import pytest

from kdelta.spec.errors import LabError
from kdelta.store.backup import back_up
from kdelta.store.check import check_store
from kdelta.store.store import Store
from tests.odd_files import ODD
from tests.store.test_bound import make

FILES = ("store.db", "store.db-wal", "store.db-shm", "blobs.lock", "store.lock")


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("name", FILES)
def test_odd_file_of_a_store_is_named_and_set_aside(tmp_path: Path, name: str, kind: str) -> None:
    runs = make(tmp_path)
    path = tmp_path / name
    path.unlink(missing_ok=True)
    ODD[kind](path)
    with pytest.raises(LabError, match=f"{name} is no file") as caught:
        Store.open(tmp_path)
    assert "kdelta check --repair" in caught.value.hint
    assert [one.path for one in check_store(tmp_path)] == [path]
    assert path in [one.path for one in check_store(tmp_path, repair=True) if one.fixed]
    assert list(check_store(tmp_path)) == []
    with Store.open(tmp_path) as store:
        kept = [one.id for one in store.runs()]
    assert sorted(kept) == ([] if name == "store.db" else sorted(one.id for one in runs))
    (aside,) = (tmp_path / "damaged").glob(f"{name}.*")
    assert kind != "folder" or (aside / "file").read_text() == "of the user"


@pytest.mark.parametrize("kind", ODD)
def test_odd_blob_is_damaged(tmp_path: Path, kind: str) -> None:
    (run, other) = make(tmp_path)
    assert run.counts_blob
    path = tmp_path / "blobs" / run.counts_blob[:2] / run.counts_blob[2:]
    path.unlink()
    ODD[kind](path)
    with Store.open(tmp_path) as store, pytest.raises(LabError, match=path.name):
        store.counts(run)
    assert [one.path for one in check_store(tmp_path)] == [path]
    assert [one.path for one in check_store(tmp_path, repair=True) if one.fixed] == [path]
    assert list(check_store(tmp_path)) == []
    with Store.open(tmp_path) as store:
        assert [one.id for one in store.runs()] == [other.id]


@pytest.mark.parametrize("kind", ["pipe", "loop", "device", "socket"])
def test_odd_partial_file_is_removed(tmp_path: Path, kind: str) -> None:
    make(tmp_path)
    path = tmp_path / "x.partial"
    ODD[kind](path)
    assert [(one.path, one.is_left) for one in check_store(tmp_path)] == [(path, True)]
    assert [one.fixed for one in check_store(tmp_path, repair=True)] == ["removed"]
    assert not path.is_symlink()
    assert not path.exists()


def test_backup_leaves_what_is_next_to_it(tmp_path: Path) -> None:
    make(tmp_path / "store")
    own = tmp_path / "backup.partial" / "file"
    own.parent.mkdir()
    own.write_text("of the user")
    assert back_up(tmp_path / "store", tmp_path / "backup") == 2
    assert own.read_text() == "of the user"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["backup", "backup.partial", "store"]


def test_backup_does_not_replace_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "store")
    target = tmp_path / "backup"

    def meanwhile(_: Path) -> None:
        target.mkdir()
        (target / "file").write_text("of another process")

    monkeypatch.setattr("kdelta.store.backup.must_be_whole", meanwhile)
    with pytest.raises(LabError, match="writing"):
        back_up(tmp_path / "store", target)
    assert [one.name for one in target.iterdir()] == ["file"]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["backup", "store"]


def test_backup_removes_what_killed_ones_left(tmp_path: Path) -> None:
    make(tmp_path / "store")
    left, other = tmp_path / "b.0123abcd.partial", tmp_path / "b.89abcdef.partial"
    for folder in (left, other):
        folder.mkdir()
    (left / "store.db").write_bytes(b"")
    back_up(tmp_path / "store", tmp_path / "b")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["b", other.name, "store"]
