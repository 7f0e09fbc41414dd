# SPDX-License-Identifier: GPL-2.0-or-later
"""The store: runs and studies in SQLite next to the blobs, in one folder that many may write."""

import contextlib
import fcntl
import json
import os
import secrets
import sqlite3
import threading
import time
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, TypeVar, Unpack

import msgspec

from kdelta.counts.model import RunCounts, decode_counts, encode_counts, region_names
from kdelta.host.files import lab_errors, make_folder, open_regular
from kdelta.host.invoked import invoked
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.run import RunStatus
from kdelta.store.blobs import Blobs
from kdelta.store.bound import bound_of
from kdelta.store.database import (
    BLOBS_LOCK,
    DATABASE,
    blobs_named,
    connect,
    damaged,
    explained_errors,
    has_database,
    migrate,
    must_be_files,
    must_have_tables,
    must_not_be_emptied,
    prepare,
    revision,
    row_damaged,
)
from kdelta.store.last import Last, keep_last, read_last
from kdelta.store.model import NewRun, NewStudy, Run, Study
from kdelta.store.owner import is_alive, process_name
from kdelta.store.tables import JSON_COLUMNS, REVISION

LAST = "last"
"""The word for the study or run that was asked for last, where an id is asked for."""
_ID_BYTES = 6
_LARGEST = (1 << 63) - 1
_SHOWN = 5
_WENT_WELL = f"status = '{RunStatus.OK.value}'"
_BEGINNING = "WHERE substr(id, 1, length(?1)) = ?1 ORDER BY started"
_Kept = TypeVar("_Kept", Run, Study)
_Any = TypeVar("_Any", bound=Run | Study)


class RunEnd(TypedDict, total=False):
    """What a run ended with.

    detail          why it failed, in a line
    counts          None of one that failed
    machine         facts besides those that were known when it started
    kernel_release  what the kernel called itself
    attachments     what came out of the guest, by name
    kept            the same that the store has as blobs already
    """

    detail: str
    counts: RunCounts | None
    console: str
    seconds: float | None
    machine: Mapping[str, str | int | float] | None
    kernel_release: str | None
    attachments: Mapping[str, bytes] | None
    kept: Mapping[str, str] | None


class Store:
    """An open store; use `Store.open`."""

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self._folder = folder
        self._connection = connection
        self._lock = threading.RLock()
        self._blobs = Blobs(folder / "blobs")
        self._run = ""
        self.is_understood = False
        """Whether kernels and options of what is asked were: from then on it is no slip."""

    @classmethod
    def open(cls, folder: Path) -> "Store":
        """Opens the store in a folder, made or migrated if need be; one that is there and cannot be
        written, to be read.

        LabError if it is damaged, from a newer kdelta, or can be neither made nor read.
        """
        if has_database(folder) and not os.access(folder, os.W_OK, effective_ids=True):
            return cls._open_read_only(folder)
        make_folder(folder)
        must_be_files(folder)
        with explained_errors("opening", folder):
            connection = connect(folder / DATABASE)
        store = cls(folder, connection)
        try:
            with store._sql("opening"):
                must_not_be_emptied(connection, folder)
                prepare(connection)
                migrate(connection, folder)
                must_have_tables(connection, folder)
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def _open_read_only(cls, folder: Path) -> "Store":
        path = folder / DATABASE
        must_be_files(folder)
        # Without a log no process writes it, and SQLite need not make files next to it.
        with lab_errors("opening", path):
            log = path.with_name(f"{DATABASE}-wal")
            how = "ro" if log.exists() and log.stat().st_size else "ro&immutable=1"
        with explained_errors("opening", folder):
            connection = connect(f"file:{urllib.parse.quote(str(path))}?mode={how}")
            found = revision(connection)
            if found == REVISION:
                must_have_tables(connection, folder)
        if found != REVISION:
            connection.close()
            raise LabError(
                f"cannot read the store in {folder}: it is of another version of kdelta (schema "
                f"{found}, and this one reads {REVISION}), and cannot be written",
                "copy the folder, and name the copy in KDELTA_DATA_DIR",
            )
        return cls(folder, connection)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start_run(self, run: NewRun) -> str:
        """Enters a run that starts now, so that not even a kill loses it; returns its id."""
        run_id = secrets.token_hex(_ID_BYTES)
        row = {
            **msgspec.structs.asdict(run),
            "id": run_id,
            "status": None,
            "detail": "",
            "started": time.time(),
            "owner": process_name(os.getpid()),
            "attachments": {},
            "command": invoked.line,
        }
        self._insert("runs", row)
        return run_id

    def finish_run(self, run_id: str, status: RunStatus | None, **found: Unpack[RunEnd]) -> Run:
        """Enter how a run ended, and all that came out of it; return the run. status: None of one
        that the lab interrupted, which is no answer.
        """
        begun = self._by_id(run_id)
        counts, console = found.get("counts"), found.get("console", "")
        attachments = found.get("attachments") or {}
        with self.writing():
            row: dict[str, Any] = {
                "status": status.value if status else None,
                **({} if status else {"owner": ""}),
                "detail": found.get("detail", ""),
                "seconds": found.get("seconds"),
                "machine": {**begun.machine, **(found.get("machine") or {})},
                "kernel_release": found.get("kernel_release") or begun.kernel_release,
                "counts_blob": None if counts is None else self.put(encode_counts(counts)),
                "console_blob": self.put(console.encode()) if console else None,
                "attachments": {
                    **(found.get("kept") or {}),
                    **{name: self.put(data) for name, data in attachments.items()},
                },
            }
            row["bound"] = bound_of({**msgspec.structs.asdict(begun), **row})
            values = _plain(row)
            columns = ", ".join(f"{name} = ?" for name in values)
            with self._sql("writing") as connection:
                connection.execute(
                    f"UPDATE runs SET {columns} WHERE id = ?", [*values.values(), run_id]
                )
        return self._by_id(run_id)

    def find_run(self, key: str) -> Run | None:
        """The latest run of that key that went well."""
        found = self._latest(f"key = ? AND {_WENT_WELL}", key, limit=1)
        return next((run for run in found if run.key == key), None)  # an index may be damaged

    def find_failure(self, key: str) -> Run | None:
        """The latest run of that key, if it ended, and not well."""
        latest = self._latest("key = ?", key, limit=1)
        return next((run for run in latest if run.status not in (None, RunStatus.OK)), None)

    def runs(self, limit: int | None = None) -> list[Run]:
        """The runs, the latest first."""
        return self._latest(limit=limit)

    def runs_of(self, kernel_identity: str) -> list[Run]:
        """The runs of a kernel that went well, the latest first."""
        return self._latest(f"kernel_identity = ? AND {_WENT_WELL}", kernel_identity)

    def run(self, prefix: str) -> Run:
        """Return the run of that id, or of the only id that begins so, or the "last" one.

        UserError if there is none, or more than one, or if what was asked for last was refused.
        """
        if prefix == LAST:
            if (last := self.last) and last.run:
                return self._by_id(last.run)
            if not (latest := self.runs(limit=1)):
                raise UserError("there is no run yet", "kdelta compare and kdelta run make some")
            return latest[0]
        none = UserError(f"no run is called {prefix!r}", "kdelta runs lists them")
        return _only_one(prefix, self._runs_like(prefix), "run", none)

    def keep_study(self, study: NewStudy) -> Study:
        """Enters a study that is done; its report is a blob already."""
        kept = Study(id=secrets.token_hex(_ID_BYTES), **msgspec.structs.asdict(study))
        row = msgspec.structs.asdict(kept)
        self._insert("studies", {**row, "bound": bound_of(row, "studies")})
        return kept

    def note_run(self, run_id: str) -> None:
        """Note that a run belongs to what is asked, whether it was made or is from the store."""
        self._run = run_id

    def enter_last(self, study: str = "", *, refused: str = "") -> None:
        """Enter what was asked for last: that study, why it was refused, or else the run that was
        noted, if any.
        """
        if study or refused or self._run:
            last = Last(
                id=study or ("" if refused else self._run),
                run=self._run,
                refused=refused,
                command=invoked.line,
                started=time.time(),
            )
            keep_last(self._folder, last)

    @property
    def last(self) -> Last | None:
        """Return what was asked for last, if it is still there. UserError if it was refused."""
        if last := read_last(self._folder):
            last.must_be_there()
            is_study = bool(self._rows("studies", "WHERE id = ?", last.id, limit=1))
            if (is_study or self._latest("id = ?", last.id)) and (
                not last.run or self._latest("id = ?", last.run)
            ):
                return last
        return None

    def studies(self, limit: int | None = None) -> list[Study]:
        """The studies, the latest first."""
        return self._as(list[Study], self._rows("studies", "ORDER BY started DESC", limit=limit))

    def study_or_run(self, prefix: str) -> Study | Run:
        """Return the study or run of that id, or of the only id that begins so, or the "last" one.

        UserError if there is none, or more than one, or if what was asked for last was refused.
        """
        if prefix == LAST:
            if last := self.last:
                return self.study_or_run(last.id)
            if not (latest := self.studies(limit=1)):
                raise UserError(
                    "no study is stored yet",
                    "kdelta compare makes one; kdelta runs lists the runs, which have reports, too",
                )
            return latest[0]
        like = self._as(list[Study], self._rows("studies", _BEGINNING, prefix, limit=_SHOWN))
        both: list[Study | Run] = [*like, *self._runs_like(prefix)]
        return _only_one(prefix, both, "study's or run", _nothing_called(prefix))

    def counts(self, run: Run) -> RunCounts:
        """What a run counted; LabError if it counted nothing, or its blob is missing or damaged."""
        if run.counts_blob is None:
            raise LabError(f"run {run.id} ({run.word}) has no counts")
        return decode_counts(self.get(run.counts_blob))

    def regions(self, run: Run) -> tuple[str, ...]:
        """The names of the regions that a run counted; none where they cannot be read."""
        with contextlib.suppress(LabError):
            return region_names(self.get(run.counts_blob)) if run.counts_blob else ()
        return ()

    def console(self, run: Run) -> str:
        """What the guest of a run printed."""
        return self.get(run.console_blob).decode(errors="replace") if run.console_blob else ""

    def put(self, content: bytes) -> str:
        """Keeps a blob; returns its hash."""
        return self._blobs.put(content)

    def get(self, blob: str) -> bytes:
        """A blob by its hash; LabError if it is missing or damaged."""
        return self._blobs.get(blob)

    def remove(self, found: Study | Run) -> int:
        """Removes a study or a run, and its blobs that nothing else has; returns the bytes freed.

        UserError for a run that is under way, and for what is not there any more.
        """
        if isinstance(found, Run) and found.word == "started":
            raise UserError(
                f"cannot remove run {found.id}: it is under way",
                "end the command that makes it first; kdelta runs shows how it ended",
            )
        removed, freed = self.remove_all([found])
        if not removed:  # another process was first
            raise _nothing_called(found.id)
        return freed

    def remove_all(self, found: Sequence[Study | Run]) -> tuple[int, int]:
        """Removes studies and runs with their blobs that nothing else has; returns how many of them
        were there, and the bytes freed. Runs that are under way stay.
        """
        with self.writing(alone=True):
            removed = 0
            with self._sql("writing") as connection, connection:
                connection.execute("BEGIN IMMEDIATE")
                for one in found:
                    if isinstance(one, Run) and one.word == "started":
                        continue
                    table = "runs" if isinstance(one, Run) else "studies"
                    gone = connection.execute(f"DELETE FROM {table} WHERE id = ?", [one.id])
                    removed += gone.rowcount
            # Files come last: a kill leaves blobs that nothing names, never the reverse.
            with self._sql("reading") as connection:
                left = blobs_named(connection)
            blobs = {blob for one in found for blob in _blobs_of(one)}
            return removed, sum(self._blobs.remove(blob) for blob in blobs - left)

    def remove_orphans(self) -> tuple[int, int]:
        """Removes blobs that no run and no study has; returns how many, and the bytes freed."""
        with self.writing(alone=True):
            with self._sql("reading") as connection:
                left = blobs_named(connection)
            freed = [self._blobs.remove(name) for name in self._blobs.names().keys() - left]
        return len(freed), sum(freed)

    def copy_rows(self, to: sqlite3.Connection) -> None:
        """Copies the database as it is at one moment."""
        with self._sql("copying") as connection:
            connection.backup(to)

    @contextlib.contextmanager
    def writing(self, *, alone: bool = False) -> Iterator[None]:
        """While a blob is kept and not yet entered nothing removes it: who removes is `alone`."""
        with blobs_locked(self._folder, alone=alone):
            yield

    def structure_damage(self) -> str:
        """What is wrong with the database, whatever its rows say; empty if nothing is."""
        with self._sql("checking") as connection:
            (said,) = connection.execute("PRAGMA integrity_check").fetchone()
        return "" if said == "ok" else str(said)

    def _by_id(self, run_id: str) -> Run:
        if not (found := self._latest("id = ?", run_id)):
            raise LabError(f"the store has lost run {run_id}", "was the store replaced meanwhile?")
        return found[0]

    def _latest(self, which: str = "1", *values: str, limit: int | None = None) -> list[Run]:
        return self._runs(f"WHERE {which} ORDER BY started DESC", *values, limit=limit)

    def _runs_like(self, prefix: str) -> list[Run]:
        return self._runs(_BEGINNING, prefix, limit=_SHOWN)

    def _runs(self, which: str, *values: str, limit: int | None = None) -> list[Run]:
        rows = self._rows("runs", which, *values, limit=limit)
        for row in rows:
            row["alive"] = row["status"] is None and is_alive(row.pop("owner"))
        return self._as(list[Run], rows)

    def _rows(
        self, table: str, which: str, *values: str, limit: int | None = None
    ) -> list[dict[str, Any]]:
        # -1 is no limit, and more than SQLite's largest integer would be no number to it.
        most = -1 if limit is None else min(limit, _LARGEST)
        query = f"SELECT * FROM {table} {which} LIMIT {most}"
        with self._sql("reading") as connection:
            rows = [dict(row) for row in connection.execute(query, values)]
            for row in rows:
                row |= {name: json.loads(row[name]) for name in JSON_COLUMNS & row.keys()}
                if row.pop("bound") != bound_of(row, table):
                    raise row_damaged(self._folder, table, row["id"])
            return rows

    def _insert(self, table: str, row: Mapping[str, Any]) -> None:
        values = _plain(row)
        marks = ", ".join("?" * len(values))
        with self._sql("writing") as connection:
            connection.execute(
                f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})",
                list(values.values()),
            )

    def _as(self, kind: type[list[_Kept]], rows: list[dict[str, Any]]) -> list[_Kept]:
        try:
            return msgspec.convert(rows, kind)
        except msgspec.ValidationError as error:
            raise damaged(self._folder, str(error)) from error

    @contextlib.contextmanager
    def _sql(self, doing: str) -> Iterator[sqlite3.Connection]:
        """The connection, for one thread at a time; what SQLite refuses is a LabError."""
        with self._lock, explained_errors(doing, self._folder):
            yield self._connection


@contextlib.contextmanager
def blobs_locked(folder: Path, *, alone: bool) -> Iterator[None]:
    """Hold the lock of `Store.writing`, for a store that need not be open."""
    lock = folder / BLOBS_LOCK
    with (
        lab_errors("opening", lock),
        os.fdopen(open_regular(lock, os.O_WRONLY | os.O_CREAT), "wb") as file,
    ):
        fcntl.flock(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


def _blobs_of(one: Study | Run) -> Iterator[str]:
    """The blobs that a study or a run names."""
    if isinstance(one, Study):
        yield one.report_blob
    else:
        yield from filter(None, (one.counts_blob, one.console_blob, *one.attachments.values()))


def _only_one(prefix: str, found: Sequence[_Any], word: str, none: UserError) -> _Any:
    """The one that is called so, or whose id alone begins so. UserError if there are more, and
    `none` if there is none.
    """
    if not prefix:  # an empty variable of a shell, which must not name the only one
        raise none
    exact = [one for one in found if one.id == prefix]
    if len(exact or found) > 1:
        raise UserError(
            f"more than one {word}'s id begins with {prefix!r}",
            "these: " + ", ".join(one.id for one in found[:_SHOWN]),
        )
    if not found:
        raise none
    return (exact or found)[0]


def _nothing_called(name: str) -> UserError:
    return UserError(
        f"no study and no run is called {name!r}",
        "kdelta report --list lists the studies, kdelta runs the runs",
    )


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as SQLite takes it."""
    return {
        name: json.dumps(value) if name in JSON_COLUMNS else value for name, value in row.items()
    }
