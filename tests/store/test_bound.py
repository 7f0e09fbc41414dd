# SPDX-License-Identifier: GPL-2.0-or-later
"""Rows of the store: what was changed after it was entered is never taken for a result."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from kdelta.spec.errors import LabError
from kdelta.spec.run import RunStatus
from kdelta.store.check import check_store, must_be_whole
from kdelta.store.database import DATABASE
from kdelta.store.model import Run
from kdelta.store.store import Store
from tests.store.test_store import COUNTS, new
from tests.synthetic import own, region, run

OTHERS = run(region("getppid", {own("sys_getppid"): 1}))


def make(folder: Path) -> list[Run]:
    with Store.open(folder) as store:
        return [
            store.finish_run(store.start_run(new(key)), RunStatus.OK, counts=counts)
            for key, counts in (("a", COUNTS), ("b", OTHERS))
        ]


def sql(folder: Path, statement: str) -> None:
    connection = sqlite3.connect(folder / DATABASE)
    with connection:
        connection.execute(statement)
    connection.close()


CHANGES = {
    "counts": "UPDATE runs SET counts_blob = (SELECT counts_blob FROM runs WHERE key = 'b')",
    "keys": "UPDATE runs SET key = CASE key WHEN 'a' THEN 'b' ELSE 'a' END",
    "perturbation": "UPDATE runs SET perturbation = perturbation + 1",
    "kernel": "UPDATE runs SET kernel_identity = 'c'",
    "release": "UPDATE runs SET kernel_release = '7.0'",
    "machine": """UPDATE runs SET machine = replace(machine, 'tcg', 'kvm')""",
    "started": "UPDATE runs SET started = started + 1",
    "going on": "UPDATE runs SET status = NULL",
    "bound": "UPDATE runs SET bound = ''",
}


@pytest.mark.parametrize("change", CHANGES)
def test_counts_of_a_changed_row_is_an_error(tmp_path: Path, change: str) -> None:
    (made, _) = make(tmp_path)
    sql(tmp_path, CHANGES[change])
    expected = pytest.raises(LabError, match="its row was changed after it was entered")
    with Store.open(tmp_path) as store, expected as caught:
        store.run(made.id)
    assert str(tmp_path / DATABASE) in caught.value.message
    assert "kdelta check --repair" in caught.value.hint
    with pytest.raises(LabError, match="its row was changed"):
        must_be_whole(tmp_path)
    assert all(one.fixed for one in check_store(tmp_path, repair=True))
    assert list(check_store(tmp_path)) == []


def test_runs_of_an_older_version_are_tied_to_what_they_have(tmp_path: Path) -> None:
    made = make(tmp_path)
    for table in ("runs", "studies"):
        sql(tmp_path, f"ALTER TABLE {table} DROP COLUMN bound")
    sql(tmp_path, "UPDATE alembic_version SET version_num = '0003'")
    with Store.open(tmp_path) as store:
        assert [store.counts(store.run(one.id)) for one in made] == [COUNTS, OTHERS]
    sql(tmp_path, CHANGES["counts"])
    with Store.open(tmp_path) as store, pytest.raises(LabError, match="its row was changed"):
        store.counts(store.run(made[0].id))


def test_store_emptied_is_an_error_and_no_new_store(tmp_path: Path) -> None:
    make(tmp_path)
    for path in tmp_path.glob(f"{DATABASE}*"):
        path.unlink()
    (tmp_path / DATABASE).touch()
    with pytest.raises(LabError, match=r"damaged: store\.db is empty, and its runs are lost"):
        Store.open(tmp_path)
    assert not (tmp_path / DATABASE).stat().st_size


def _cut_to_a_byte(folder: Path) -> None:
    for path in folder.glob(f"{DATABASE}*"):
        path.unlink()
    (folder / DATABASE).write_bytes(b"S")


def _empty_with_a_log(folder: Path) -> None:
    _cut_to_a_byte(folder)
    (folder / DATABASE).write_bytes(b"")
    (folder / f"{DATABASE}-wal").touch()


def _without_tables(folder: Path) -> None:
    _cut_to_a_byte(folder)
    (folder / DATABASE).unlink()
    sql(folder, "CREATE TABLE a (b)")
    sql(folder, "DROP TABLE a")


def _without_version(folder: Path) -> None:
    sql(folder, "DELETE FROM alembic_version")


@pytest.mark.parametrize(
    ("lose", "why"),
    [
        (_cut_to_a_byte, "its runs are lost"),
        (_empty_with_a_log, "its runs are lost"),
        (_without_tables, "its runs are lost"),
        (_without_version, "the version of its tables is lost"),
    ],
)
def test_store_without_its_tables_is_damaged(
    lose: Callable[[Path], None], why: str, tmp_path: Path
) -> None:
    make(tmp_path)
    blobs = sorted(tmp_path.glob("blobs/*/*"))
    lose(tmp_path)
    for _ in range(2):
        with pytest.raises(LabError, match=rf"damaged: .*{why}"):
            Store.open(tmp_path)
    assert [one.is_damage for one in check_store(tmp_path)][:1] == [True]
    assert sorted(tmp_path.glob("blobs/*/*")) == blobs
    list(check_store(tmp_path, repair=True))
    assert list(check_store(tmp_path)) == []
