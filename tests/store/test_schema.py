# SPDX-License-Identifier: GPL-2.0-or-later
"""Databases with other tables than kdelta makes, and rows that it does not write: named, and the
blobs of what is whole stay.
"""

import time
from pathlib import Path

import pytest

from kdelta.cli.main import ended
from kdelta.spec.errors import LabError
from kdelta.store.bound import bound_of
from kdelta.store.check import check_store
from kdelta.store.database import DATABASE, connect
from kdelta.store.rows import read_row
from kdelta.store.store import Store
from tests.cli.captured import Captured
from tests.store.test_bound import make, sql

_ENDLESS = """CREATE VIEW studies AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c)
    SELECT x AS id, x AS kind, x AS started FROM c"""
SCHEMAS = {
    "a view in place of a table": (
        "ALTER TABLE runs RENAME TO r2", "CREATE VIEW runs AS SELECT * FROM r2",
    ),
    "a view without end": ("DROP TABLE studies", _ENDLESS),
    "a lost column": ("ALTER TABLE runs DROP COLUMN command",),
    "a column of another name": ("ALTER TABLE runs RENAME COLUMN bound TO b2",),
    "a table without numbers of rows": (
        "DROP TABLE studies",
        ("CREATE TABLE studies (id PRIMARY KEY, kind, question, command, started, version,"
        " report_blob, operations, answer, bound) WITHOUT ROWID"),
    ),
    "a table of a module": (
        "DROP TABLE studies",
        ("CREATE VIRTUAL TABLE studies USING fts5(id, kind, question, command, started, version,"
        " report_blob, operations, answer, bound)"),
    ),
    "a trigger": (
        "CREATE TRIGGER t AFTER DELETE ON runs BEGIN DELETE FROM studies; DELETE FROM runs; END",
    ),
    "a version that is none": ("UPDATE alembic_version SET version_num = x'ff'",),
}  # fmt: skip


@pytest.mark.parametrize("what", SCHEMAS)
def test_other_tables_are_damage(tmp_path: Path, what: str) -> None:
    made = make(tmp_path)
    for statement in SCHEMAS[what]:
        sql(tmp_path, statement)
    content = {path.name: path.read_bytes() for path in tmp_path.glob("blobs/*/*")}
    with pytest.raises(LabError, match="is damaged: ") as caught:
        Store.open(tmp_path)
    assert "kdelta check --repair" in caught.value.hint
    assert [one.path for one in check_store(tmp_path)] == [tmp_path / DATABASE]
    assert all(one.fixed for one in list(check_store(tmp_path, repair=True)))
    assert list(check_store(tmp_path)) == []
    left = {
        path.parent.name[-2:] + path.name: path for path in tmp_path.rglob("*") if path.is_file()
    }
    for name, whole in content.items():  # in use, or set aside
        assert any(
            path.name.endswith(name) and path.read_bytes() == whole for path in left.values()
        )
    with Store.open(tmp_path) as store:
        kept = {one.id for one in store.runs()}
    readable = what not in {
        "a view in place of a table",
        "a lost column",
        "a column of another name",
    }
    assert kept == ({one.id for one in made} if readable else set())


def test_row_of_a_huge_number_is_found_soon(tmp_path: Path) -> None:
    made = make(tmp_path)
    sql(tmp_path, "UPDATE runs SET rowid = 9000000000000000000 WHERE rowid = 1")
    sql(tmp_path, "DELETE FROM alembic_version")
    before = time.process_time()
    list(check_store(tmp_path, repair=True))
    assert time.process_time() - before < 20
    with Store.open(tmp_path) as store:
        assert {one.id for one in store.runs()} == {one.id for one in made}


ODD_ROWS = {
    "deep JSON": "machine = '" + "[" * 100_000 + "]" * 100_000 + "'",
    "a blob that is a path": "counts_blob = '../../../etc/passwd'",
}


@pytest.mark.parametrize("what", ODD_ROWS)
def test_odd_row_is_named_and_set_aside(own_data: Path, capsys: Captured, what: str) -> None:
    (first, second) = make(own_data)
    sql(own_data, f"UPDATE runs SET {ODD_ROWS[what]} WHERE id = '{first.id}'")
    bind(own_data)
    assert ended(["show", first.id]) == 3
    assert "bug" not in capsys.readouterr().err
    assert [one.path for one in check_store(own_data)][:1] == [own_data / DATABASE]
    assert all(one.fixed for one in list(check_store(own_data, repair=True)))
    assert list(check_store(own_data)) == []
    with Store.open(own_data) as store:
        assert [one.id for one in store.runs()] == [second.id]


def bind(folder: Path) -> None:
    """As one would who can compute the hash of a row."""
    connection = connect(folder / DATABASE)
    with connection:
        for (rowid,) in connection.execute("SELECT rowid FROM runs").fetchall():
            row, _ = read_row(connection, "runs", rowid) or (None, "")
            if row and isinstance(row.values["machine"], dict):
                bound = [bound_of(row.values), rowid]
                connection.execute("UPDATE runs SET bound = ? WHERE rowid = ?", bound)
    connection.close()


@pytest.mark.parametrize("started", [1e300, -1e18, 1e15, -1])
def test_run_of_no_time_is_shown(own_data: Path, capsys: Captured, started: float) -> None:
    make(own_data)
    sql(own_data, f"UPDATE runs SET started = {started}")
    bind(own_data)
    assert ended(["runs"]) == 0
    assert "at no time" in capsys.readouterr().out
