# SPDX-License-Identifier: GPL-2.0-or-later
"""The store: nothing is lost, and what is broken is reported."""

import errno
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from kdelta.host.invoked import invoked
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.run import RunStatus
from kdelta.store.check import must_be_whole
from kdelta.store.database import DATABASE, _explained
from kdelta.store.model import NewRun, NewStudy, Run, Study
from kdelta.store.store import Store
from kdelta.store.tables import REVISION
from tests.store.blob_files import blob_path
from tests.synthetic import own, region, run

COUNTS = run(region("getppid", {own("sys_getppid"): 33700}))


def new(key: str = "k", **changes: object) -> NewRun:
    made = NewRun(
        key=key,
        kernel_identity="a" * 64,
        kernel_spec="deb:linux-image-cloud-amd64",
        kernel_release="6.1.0-47-cloud-amd64",
        machine={"name": "tcg", "memory_mib": 1024},
        workload="syscalls",
        workload_identity="b" * 64,
        perturbation=1,
    )
    return msgspec.structs.replace(made, **changes)


def study(question: str, blob: str = "c" * 64, started: float = 1_767_225_600.0) -> NewStudy:
    return NewStudy("compare", question, "kdelta compare a b", started, "0.1", blob)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "data") as opened:
        yield opened


def python(code: str, folder: Path) -> "subprocess.Popen[str]":
    setup = (
        "from pathlib import Path; from kdelta.store.store import Store; "
        "from tests.store.test_store import new, COUNTS, RunStatus\n"
        f"store = Store.open(Path({str(folder)!r}))\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", setup + code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )


def test_a_run_from_start_to_end(store: Store) -> None:
    run_id = store.start_run(new())
    started = store.run(run_id)
    assert (started.status, started.word) == (None, "started")
    assert store.find_run("k") is None
    ended = store.finish_run(
        run_id,
        RunStatus.OK,
        counts=COUNTS,
        console="Linux version 6.1\n",
        seconds=1.5,
        machine={"cpu_model": "QEMU Virtual CPU"},
        attachments={"stdout": b"hello\n"},
    )
    assert store.find_run("k") == store.run(run_id) == ended
    assert ended.word == "ok"
    assert ended.machine == {"name": "tcg", "memory_mib": 1024, "cpu_model": "QEMU Virtual CPU"}
    assert ended.kernel_release == "6.1.0-47-cloud-amd64"
    assert ended.seconds == 1.5
    assert store.counts(ended) == COUNTS
    assert store.console(ended) == "Linux version 6.1\n"
    assert store.get(ended.attachments["stdout"]) == b"hello\n"
    assert len(ended.started_text) == len("2026-01-01 00:00:00")


def test_what_an_earlier_run_kept_is_kept_with_a_later_one(store: Store) -> None:
    """By its blob, which is not read for it; what the later one has itself comes first."""
    first = store.finish_run(
        store.start_run(new()), RunStatus.OK, counts=COUNTS, attachments={"a": b"1", "b": b"2"}
    )
    second = store.finish_run(
        store.start_run(new()),
        RunStatus.OK,
        counts=COUNTS,
        attachments={"b": b"3"},
        kept=first.attachments,
    )
    assert store.find_run("k") == second
    assert {name: store.get(blob) for name, blob in second.attachments.items()} == {
        "a": b"1",
        "b": b"3",
    }


@pytest.mark.parametrize("status", [status for status in RunStatus if status is not RunStatus.OK])
def test_failed_runs_are_kept_and_never_answer(store: Store, status: RunStatus) -> None:
    run_id = store.start_run(new(kernel_identity="", kernel_release=""))
    store.finish_run(run_id, status, detail="panic: no init", console="last words")
    (found,) = store.runs()
    assert (found.word, found.detail) == (status.value, "panic: no init")
    assert store.console(found) == "last words"
    assert store.find_run("k") is None
    with pytest.raises(LabError, match="has no counts"):
        store.counts(found)


def test_the_latest_of_a_key_answers(store: Store) -> None:
    ids = [store.start_run(new(key)) for key in ("k", "k", "other")]
    for run_id in ids:
        store.finish_run(run_id, RunStatus.OK, counts=COUNTS)
    found = store.find_run("k")
    assert found is not None
    assert found.id == ids[1]
    assert [one.id for one in store.runs()] == ids[::-1]
    assert [one.id for one in store.runs(limit=2)] == ids[:0:-1]
    assert store.run("last").id == ids[2]


def test_runs_by_prefix(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    names = iter(["abcd11111111", "abce22222222", "abc", "0%0000000000"])
    monkeypatch.setattr("secrets.token_hex", lambda _: next(names))
    for _ in range(4):
        store.start_run(new())
    assert store.run("abcd").id == "abcd11111111"
    assert store.run("abc").id == "abc"
    with pytest.raises(UserError, match="more than one") as caught:
        store.run("ab")
    assert caught.value.hint == "these: abcd11111111, abce22222222, abc"
    for missing in ("abcdef", "%", "_"):
        with pytest.raises(UserError, match="no run is called"):
            store.run(missing)


def test_runs_limit_beyond_sqlite_is_no_limit(store: Store) -> None:
    run_id = store.start_run(new())
    assert [one.id for one in store.runs(99999999999999999999)] == [run_id]
    assert store.studies(1 << 64) == []


def test_no_last_run(store: Store) -> None:
    with pytest.raises(UserError, match="no run yet"):
        store.run("last")


def test_a_study_is_kept(store: Store) -> None:
    blob = store.put(b"a report")
    first = store.keep_study(study("first?", blob))
    assert msgspec.structs.asdict(first) == {
        "id": first.id,
        "kind": "compare",
        "question": "first?",
        "command": "kdelta compare a b",
        "started": 1_767_225_600.0,
        "version": "0.1",
        "report_blob": blob,
        "operations": "",
        "answer": "",
    }
    assert first.started_text == "2026-01-01 00:00:00"
    second = store.keep_study(study("second?", blob, 1_767_225_601.0))
    assert store.studies() == [second, first]
    assert store.studies(limit=1) == [second]
    assert store.study_or_run("last") == second
    assert store.study_or_run(first.id[:8]) == first


def test_studies_and_runs_by_prefix(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    names = iter(["abcd11111111", "abce22222222", "abc"])
    monkeypatch.setattr("secrets.token_hex", lambda _: next(names))
    made = store.start_run(new())
    kept = store.keep_study(study("?"))
    assert store.study_or_run("abcd") == store.run(made)
    assert store.study_or_run("abce") == kept
    with pytest.raises(UserError, match="more than one study's or run's id begins") as caught:
        store.study_or_run("abc")
    assert caught.value.hint == "these: abce22222222, abcd11111111"
    exact = store.keep_study(study("?"))
    assert store.study_or_run("abc") == exact
    for missing in ("abcdef", "%", "_"):
        with pytest.raises(UserError, match="no study and no run is called"):
            store.study_or_run(missing)


def test_no_study_yet(store: Store) -> None:
    store.start_run(new())
    with pytest.raises(UserError, match="no study is stored yet"):
        store.study_or_run("last")


def test_a_killed_process_leaves_an_interrupted_run(store: Store, tmp_path: Path) -> None:
    child = python("print(store.start_run(new()), flush=True); input()\n", tmp_path / "data")
    assert child.stdout is not None
    run_id = child.stdout.readline().strip()
    assert store.run(run_id).word == "started"
    child.kill()
    child.communicate()
    assert store.run(run_id).word == "interrupted"
    assert store.find_run("k") is None


@pytest.mark.slow
def test_two_processes_write_at_once(tmp_path: Path) -> None:
    # The store does not exist yet: they also make it at once.
    code = (
        "for index in range(20):\n"
        "    run_id = store.start_run(new(str(index)))\n"
        "    store.finish_run(run_id, RunStatus.OK, counts=COUNTS)\n"
    )
    children = [python(code, tmp_path / "data") for _ in range(3)]
    for child in children:
        child.communicate()
    assert [child.returncode for child in children] == [0, 0, 0]
    with Store.open(tmp_path / "data") as store:
        assert [one.word for one in store.runs()] == ["ok"] * 60
        must_be_whole(tmp_path / "data")


def test_the_migrations_make_the_tables_that_a_new_store_has(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    made = sa.create_engine(f"sqlite:///{tmp_path / DATABASE}")
    migrated = sa.create_engine(f"sqlite:///{tmp_path / 'migrated'}")
    settings = Config()
    settings.set_main_option("script_location", str(files("kdelta.store") / "migrations"))
    settings.set_main_option("path_separator", "os")
    with migrated.begin() as connection:
        settings.attributes["connection"] = connection
        command.upgrade(settings, "head")
    shapes = [_shape(engine) for engine in (made, migrated)]
    assert shapes[0] == shapes[1]
    assert set(shapes[0]) == {"alembic_version", "runs", "studies"}
    with Store.open(tmp_path) as store:
        assert store.runs() == []


def _shape(engine: sa.Engine) -> dict[str, object]:
    inspector = sa.inspect(engine)
    shape: dict[str, object] = {
        table: (
            [
                (column["name"], str(column["type"]), column["nullable"])
                for column in inspector.get_columns(table)
            ],
            inspector.get_pk_constraint(table)["constrained_columns"],
            sorted(
                (str(index["name"]), index["column_names"])
                for index in inspector.get_indexes(table)
            ),
        )
        for table in inspector.get_table_names()
    }
    engine.dispose()
    return shape


def test_a_store_without_studies_gets_them(tmp_path: Path) -> None:
    """One that was written before there were studies keeps its runs."""
    with Store.open(tmp_path) as store:
        made = store.start_run(new())
    sql(tmp_path, "DROP TABLE studies")
    sql(tmp_path, "ALTER TABLE runs DROP COLUMN command")
    sql(tmp_path, "ALTER TABLE runs DROP COLUMN bound")
    sql(tmp_path, "UPDATE alembic_version SET version_num = '0001'")
    with Store.open(tmp_path) as store:
        assert [one.id for one in store.runs()] == [made]
        assert store.studies() == []
        store.keep_study(study("a"))


def test_a_store_without_answers_gets_them(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        made, kept = store.start_run(new()), store.keep_study(study("a"))
    later = [
        ("runs", "command"),
        ("runs", "bound"),
        ("studies", "operations"),
        ("studies", "answer"),
        ("studies", "bound"),
    ]
    for table, column in later:
        sql(tmp_path, f"ALTER TABLE {table} DROP COLUMN {column}")
    sql(tmp_path, "UPDATE alembic_version SET version_num = '0002'")
    with Store.open(tmp_path) as store:
        assert store.run(made).command == ""
        assert store.studies() == [kept]
        assert kept.answer == ""


def test_a_run_has_the_command_line_that_made_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for line in ("kdelta run image:a -- ls", ""):
        monkeypatch.setattr(invoked, "line", line)
        assert store.run(store.start_run(new())).command == line


def blob_files(folder: Path) -> set[Path]:
    return {one for one in (folder / "blobs").rglob("*") if one.is_file()}


def test_what_is_removed_leaves_the_blobs_that_others_have(store: Store, tmp_path: Path) -> None:
    def ended(console: str) -> Run:
        run_id = store.start_run(new())
        return store.finish_run(
            run_id, RunStatus.OK, counts=COUNTS, console=console, attachments={"x": b"shared"}
        )

    first, second = ended("first"), ended("second")
    alone = blob_path(tmp_path / "data/blobs", first.console_blob or "")
    before, size = blob_files(tmp_path / "data"), alone.stat().st_size
    assert store.remove(first) == size
    assert before - blob_files(tmp_path / "data") == {alone}
    assert store.runs() == [second]
    must_be_whole(tmp_path / "data")
    assert store.remove(second) > 0
    assert blob_files(tmp_path / "data") == set()


def test_a_removed_study_leaves_its_runs(store: Store, tmp_path: Path) -> None:
    run_id = store.start_run(new())
    made = store.finish_run(run_id, RunStatus.OK, counts=COUNTS)
    kept = store.keep_study(study("?", store.put(b"a report")))
    assert store.remove(kept) > 0
    assert (store.studies(), store.runs()) == ([], [made])
    assert len(blob_files(tmp_path / "data")) == 1
    must_be_whole(tmp_path / "data")


def test_a_run_that_is_under_way_is_not_removed(store: Store) -> None:
    made = store.run(store.start_run(new()))
    with pytest.raises(UserError, match=f"cannot remove run {made.id}: it is under way"):
        store.remove(made)
    assert store.runs() == [made]


def test_an_empty_id_names_nothing_also_if_there_is_only_one(store: Store) -> None:
    made = store.run(store.start_run(new()))
    for find in (store.run, store.study_or_run):
        with pytest.raises(UserError, match="called ''"):
            find("")
    assert store.runs() == [made]


def test_what_another_process_removed_is_not_removed_again(store: Store) -> None:
    kept = store.keep_study(study("?", store.put(b"a report")))
    store.remove(kept)
    with pytest.raises(UserError, match=f"no study and no run is called '{kept.id}'"):
        store.remove(kept)


def test_opening_again_changes_nothing(store: Store, tmp_path: Path) -> None:
    run_id = store.start_run(new())
    store.finish_run(run_id, RunStatus.OK, counts=COUNTS)
    with Store.open(tmp_path / "data") as again:
        assert again.runs() == store.runs()


def sql(folder: Path, statement: str) -> None:
    connection = sqlite3.connect(folder / DATABASE)
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_a_store_of_a_newer_version(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    sql(tmp_path, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(LabError) as caught:
        Store.open(tmp_path)
    assert f"newer kdelta (its schema is 9999, and this one knows {REVISION})" in str(caught.value)
    assert "KDELTA_DATA_DIR" in caught.value.hint


def test_a_database_that_is_none(tmp_path: Path) -> None:
    (tmp_path / DATABASE).write_bytes(b"not a database at all" * 100)
    with pytest.raises(LabError, match="is damaged: file is not a database") as caught:
        Store.open(tmp_path)
    assert "kdelta check --repair" in caught.value.hint


def test_a_torn_database(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        for index in range(200):
            store.start_run(new(str(index)))
    path = tmp_path / DATABASE
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 8192) + content[-4096:])
    with pytest.raises(LabError, match="is damaged"), Store.open(tmp_path) as store:
        store.runs()


@pytest.mark.parametrize("field", ["machine = '{'", "machine = '[]'", "status = 'splendid'"])
def test_a_row_that_cannot_be(store: Store, tmp_path: Path, field: str) -> None:
    store.start_run(new())
    sql(tmp_path / "data", f"UPDATE runs SET {field}")
    with pytest.raises(LabError, match="is damaged"):
        store.runs()


def test_a_full_disk_at_the_database(store: Store) -> None:
    # SQLite itself reports a database that may not grow as a full disk.
    store._connection.execute("PRAGMA max_page_count = 1")

    def fill() -> None:
        for index in range(1000):
            store.start_run(new(str(index)))

    with pytest.raises(LabError, match="full") as caught:
        fill()
    assert "free some space" in caught.value.hint


def test_disk_without_inodes_at_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = os.statvfs_result((*os.statvfs(tmp_path)[:5], 30, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    error = sqlite3.OperationalError("unable to open database file")
    error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
    explained = _explained(error, "opening", tmp_path / "store.db")
    assert explained
    assert explained.hint == "the disk has no inodes left, so remove files"


def test_a_full_disk_at_a_blob(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LabError, match="No space left on device") as caught:
        store.put(b"content")
    assert "free some space" in caught.value.hint
    monkeypatch.undo()
    assert store.get(store.put(b"content")) == b"content"


def test_a_folder_that_cannot_be_written() -> None:
    # Not even root can create a folder in /proc.
    with pytest.raises(LabError, match="/proc/kdelta"):
        Store.open(Path("/proc/kdelta"))


def test_a_database_that_cannot_be_written(store: Store) -> None:
    store._connection.execute("PRAGMA query_only = 1")
    with pytest.raises(LabError, match="readonly") as caught:
        store.start_run(new())
    assert "make it writable" in caught.value.hint


def test_a_store_that_stays_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdelta.store.database._BUSY_SECONDS", 0.01)
    with Store.open(tmp_path) as store:
        holder = sqlite3.connect(tmp_path / DATABASE, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(LabError, match="locked") as caught:
            store.start_run(new())
        holder.close()
    assert "another process" in caught.value.hint


def test_check_finds_what_is_lost(store: Store, tmp_path: Path) -> None:
    must_be_whole(tmp_path / "data")
    run_id = store.start_run(new())
    made: Run = store.finish_run(run_id, RunStatus.OK, counts=COUNTS, attachments={"x": b"y"})
    must_be_whole(tmp_path / "data")
    kept: Study = store.keep_study(study("?", store.put(b"a report")))
    must_be_whole(tmp_path / "data")
    for blob in (kept.report_blob, made.attachments["x"]):
        path = blob_path(tmp_path / "data" / "blobs", blob)
        content = path.read_bytes()
        path.unlink()
        with pytest.raises(LabError, match="it is missing"):
            must_be_whole(tmp_path / "data")
        path.write_bytes(content)
