# SPDX-License-Identifier: GPL-2.0-or-later
"""The store: runs and studies in SQLite next to the blobs, in one folder that many may write."""

import contextlib
import fcntl
import hashlib
import os
import re
import secrets
import sqlite3
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import sqlalchemy as sa

from kdelta.counts.model import RunCounts, decode_counts, encode_counts
from kdelta.host.files import lab_errors, make_folder, write_atomic
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.run import RunStatus
from kdelta.store.model import NewRun, NewStudy, Run, Study
from kdelta.store.tables import REVISION, alembic_version, metadata, runs, studies

# Counts of a large run: level 3 takes 60 ms for 6 MB and saves three quarters.
_LEVEL = 3
DATABASE = "store.db"
LAST = "last"
"""The word for the run, or the study, that started last, where an id is asked for."""
_BUSY_SECONDS = 30.0
_ID_BYTES = 6
_SHOWN = 5
_WENT_WELL = runs.c.status == RunStatus.OK.value
_Kept = TypeVar("_Kept", Run, Study)
_Any = TypeVar("_Any", bound=Run | Study)


class Blobs:
    """A folder of blobs. Writers do not disturb each other: equal bytes have equal names."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, content: bytes) -> str:
        """Keeps bytes and returns their hash; LabError if they cannot be written.

        A damaged blob of that name is replaced.
        """
        name = hashlib.sha256(content).hexdigest()
        if not self._is_whole(name):
            path = self._path(name)
            make_folder(path.parent)
            write_atomic(path, zlib.compress(content, _LEVEL))
        return name

    def get(self, name: str) -> bytes:
        """The bytes of that hash; LabError if they are missing or damaged."""
        path = self._path(name)
        try:
            with lab_errors("reading", path):
                packed = path.read_bytes()
        except LabError as error:
            if path.exists():
                raise
            raise LabError(
                f"the store has lost a blob: {path} is missing",
                "make its run again with --again, or bring the file back from a backup",
            ) from error
        try:
            content = zlib.decompress(packed)
        except zlib.error as error:
            raise self._damaged(path, str(error)) from error
        if hashlib.sha256(content).hexdigest() != name:
            raise self._damaged(path, "its content has another hash than its name")
        return content

    def _is_whole(self, name: str) -> bool:
        try:
            self.get(name)
        except LabError:
            return False
        return True

    def _path(self, name: str) -> Path:
        if not re.fullmatch(r"[0-9a-f]{64}", name):
            raise LabError(f"the store names a blob that cannot be one: {name!r}")
        return self._folder / name[:2] / name[2:]

    def _damaged(self, path: Path, why: str) -> LabError:
        return LabError(
            f"a blob of the store is damaged: {path}: {why}",
            "make its run again with --again, which replaces it",
        )


class Store:
    """An open store; use `Store.open`."""

    def __init__(self, folder: Path, engine: sa.Engine) -> None:
        self._folder = folder
        self._engine = engine
        self._blobs = Blobs(folder / "blobs")

    @classmethod
    def open(cls, folder: Path) -> "Store":
        """Opens the store in a folder, made or migrated if need be.

        LabError if it is damaged, from a newer kdelta, or cannot be written.
        """
        make_folder(folder)
        engine = _engine(folder / DATABASE)
        store = cls(folder, engine)
        try:
            with store._sql("opening"):
                _migrate(engine, folder)
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Closes its connections."""
        self._engine.dispose()

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
            "owner": this_process(),
            "attachments": {},
        }
        with self._sql("writing"), self._engine.begin() as connection:
            connection.execute(sa.insert(runs).values(row))
        return run_id

    def finish_run(
        self,
        run_id: str,
        status: RunStatus,
        *,
        detail: str = "",
        counts: RunCounts | None = None,
        console: str = "",
        seconds: float | None = None,
        machine: Mapping[str, str | int | float] | None = None,
        kernel_release: str | None = None,
        attachments: Mapping[str, bytes] | None = None,
        kept: Mapping[str, str] | None = None,
    ) -> Run:
        """Enters how a run ended, and all that came out of it; `machine` adds facts to those that
        were known when it started. `kept`: attachments that the store has as blobs already.
        """
        begun = self._by_id(run_id)
        row: dict[str, Any] = {
            "status": status.value,
            "detail": detail,
            "seconds": seconds,
            "machine": {**begun.machine, **(machine or {})},
            "kernel_release": kernel_release or begun.kernel_release,
            "counts_blob": None if counts is None else self.put(encode_counts(counts)),
            "console_blob": self.put(console.encode()) if console else None,
            "attachments": {
                **(kept or {}),
                **{name: self.put(data) for name, data in (attachments or {}).items()},
            },
        }
        with self._sql("writing"), self._engine.begin() as connection:
            connection.execute(sa.update(runs).where(runs.c.id == run_id).values(row))
        return self._by_id(run_id)

    def find_run(self, key: str) -> Run | None:
        """The latest run of that key that went well."""
        return next(iter(self._latest(runs.c.key == key, _WENT_WELL, limit=1)), None)

    def find_failure(self, key: str) -> Run | None:
        """The latest run of that key, if it ended, and not well."""
        for run in self._latest(runs.c.key == key, limit=1):
            if run.status not in (None, RunStatus.OK):
                return run
        return None

    def runs(self, limit: int | None = None) -> list[Run]:
        """The runs, the latest first."""
        return self._latest(limit=limit)

    def runs_of(self, kernel_identity: str) -> list[Run]:
        """The runs of a kernel that went well, the latest first."""
        return self._latest(runs.c.kernel_identity == kernel_identity, _WENT_WELL)

    def run(self, prefix: str) -> Run:
        """The run of that id, or of the only id that begins so, or the "last" one.

        UserError if there is none, or more than one.
        """
        if prefix == LAST:
            latest = self.runs(limit=1)
            if not latest:
                raise UserError("there is no run yet", "kdelta compare and kdelta run make some")
            return latest[0]
        found = _only_one(prefix, self._runs_like(prefix), "run")
        if found is None:
            raise UserError(f"no run is called {prefix!r}", "kdelta runs lists them")
        return found

    def keep_study(self, study: NewStudy) -> Study:
        """Enters a study that is done; its report is a blob already."""
        kept = Study(id=secrets.token_hex(_ID_BYTES), **msgspec.structs.asdict(study))
        with self._sql("writing"), self._engine.begin() as connection:
            connection.execute(sa.insert(studies).values(msgspec.structs.asdict(kept)))
        return kept

    def studies(self, limit: int | None = None) -> list[Study]:
        """The studies, the latest first."""
        return self._select_studies(
            sa.select(studies).order_by(studies.c.started.desc()).limit(limit)
        )

    def study_or_run(self, prefix: str) -> Study | Run:
        """The study or run of that id, or of the only id that begins so, or the "last" study.

        UserError if there is none, or more than one.
        """
        if prefix == LAST:
            latest = self.studies(limit=1)
            if not latest:
                raise UserError(
                    "no study is stored yet",
                    "kdelta compare makes one; kdelta runs lists the runs, which have reports, too",
                )
            return latest[0]
        both: list[Study | Run] = [*self._studies_like(prefix), *self._runs_like(prefix)]
        found = _only_one(prefix, both, "study's or run")
        if found is None:
            raise UserError(
                f"no study and no run is called {prefix!r}",
                "kdelta report --list lists the studies, kdelta runs the runs",
            )
        return found

    def counts(self, run: Run) -> RunCounts:
        """What a run counted; LabError if it counted nothing, or its blob is missing or damaged."""
        if run.counts_blob is None:
            raise LabError(f"run {run.id} ({run.word}) has no counts")
        return decode_counts(self.get(run.counts_blob))

    def console(self, run: Run) -> str:
        """What the guest of a run printed."""
        return self.get(run.console_blob).decode(errors="replace") if run.console_blob else ""

    def put(self, content: bytes) -> str:
        """Keeps a blob; returns its hash."""
        return self._blobs.put(content)

    def get(self, blob: str) -> bytes:
        """A blob by its hash; LabError if it is missing or damaged."""
        return self._blobs.get(blob)

    def check(self) -> None:
        """Reads all that the store has; raises the first LabError that it meets."""
        with self._sql("checking"), self._engine.connect() as connection:
            said = connection.exec_driver_sql("PRAGMA integrity_check").scalar_one()
        if said != "ok":
            raise _damaged(self._folder, str(said))
        for run in self.runs():
            for blob in (run.counts_blob, run.console_blob, *run.attachments.values()):
                if blob is not None:
                    self.get(blob)
        for study in self.studies():
            self.get(study.report_blob)

    def _by_id(self, run_id: str) -> Run:
        found = self._select(sa.select(runs).where(runs.c.id == run_id))
        if not found:
            raise LabError(f"the store has lost run {run_id}", "was the store replaced meanwhile?")
        return found[0]

    def _latest(self, *which: sa.ColumnElement[bool], limit: int | None = None) -> list[Run]:
        query = sa.select(runs).where(*which).order_by(runs.c.started.desc())
        return self._select(query.limit(limit))

    def _runs_like(self, prefix: str) -> list[Run]:
        return self._select(_beginning(sa.select(runs), runs, prefix))

    def _studies_like(self, prefix: str) -> list[Study]:
        return self._select_studies(_beginning(sa.select(studies), studies, prefix))

    def _select(self, query: sa.Select[Any]) -> list[Run]:
        rows = self._rows(query)
        for row in rows:
            row["alive"] = row["status"] is None and is_alive(row.pop("owner"))
        return self._as(list[Run], rows)

    def _select_studies(self, query: sa.Select[Any]) -> list[Study]:
        return self._as(list[Study], self._rows(query))

    def _rows(self, query: sa.Select[Any]) -> list[dict[str, Any]]:
        with self._sql("reading"), self._engine.connect() as connection:
            # SQLAlchemy's names of columns are of a subclass of str, which msgspec does not take.
            found = connection.execute(query).mappings()
            return [{str(name): value for name, value in row.items()} for row in found]

    def _as(self, kind: type[list[_Kept]], rows: list[dict[str, Any]]) -> list[_Kept]:
        try:
            return msgspec.convert(rows, kind)
        except msgspec.ValidationError as error:
            raise _damaged(self._folder, str(error)) from error

    @contextlib.contextmanager
    def _sql(self, doing: str) -> Iterator[None]:
        """Turns what SQLite refuses into a LabError with advice."""
        path = self._folder / DATABASE
        try:
            yield
        except sa.exc.DatabaseError as error:
            explained = _explained(error.orig, doing, path)
            if explained is None:
                raise
            raise explained from error
        except ValueError as error:  # a JSON column that holds none
            raise _damaged(self._folder, str(error)) from error


def _only_one(prefix: str, found: Sequence[_Any], word: str) -> _Any | None:
    """The one that is called so, or whose id alone begins so; None if there is none. UserError if
    there are more.
    """
    exact = [one for one in found if one.id == prefix]
    if len(exact or found) > 1:
        raise UserError(
            f"more than one {word}'s id begins with {prefix!r}",
            "these: " + ", ".join(one.id for one in found[:_SHOWN]),
        )
    return (exact or found)[0] if found else None


def _beginning(query: sa.Select[Any], table: sa.Table, prefix: str) -> sa.Select[Any]:
    like = table.c.id.startswith(prefix, autoescape=True)
    return query.where(like).order_by(table.c.started).limit(_SHOWN)


def _engine(path: Path) -> sa.Engine:
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(path)), connect_args={"timeout": _BUSY_SECONDS}
    )

    @sa.event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, _record: object) -> None:
        # WAL lets readers read while one writes; with it, NORMAL survives a kill, and loses at
        # most the last transactions in a power cut.
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        # Python's module would begin transactions automatically, and not around changes of tables.
        connection.isolation_level = None

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    return engine


def _migrate(engine: sa.Engine, folder: Path) -> None:
    if _revision(engine) == REVISION:
        return
    lock = folder / "store.lock"
    with lab_errors("opening", lock), lock.open("ab") as file:
        # Another process may be migrating now; the second process finds it done.
        fcntl.flock(file, fcntl.LOCK_EX)
        found = _revision(engine)
        if found is None:
            _make_tables(engine)
        elif found != REVISION:
            _take_steps(engine, folder, found)


def _revision(engine: sa.Engine) -> str | None:
    with engine.connect() as connection:
        if not sa.inspect(connection).has_table("alembic_version"):
            return None
        found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
        return None if found is None else str(found)


def _make_tables(engine: sa.Engine) -> None:
    """Makes a store's tables as the newest migration would leave them, which takes less time."""
    with engine.begin() as connection:
        metadata.create_all(connection)
        connection.execute(alembic_version.insert().values(version_num=REVISION))


def _take_steps(engine: sa.Engine, folder: Path, found: str) -> None:
    # Imported here: it takes longer than everything else at start, and is rarely needed.
    from alembic import command, config, script  # noqa: PLC0415

    settings = config.Config()
    settings.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    settings.set_main_option("path_separator", "os")
    known = {
        step.revision for step in script.ScriptDirectory.from_config(settings).walk_revisions()
    }
    if found not in known:
        raise LabError(
            f"the store in {folder} was written by a newer kdelta (its schema is {found}, "
            f"and this one knows {REVISION})",
            "use that kdelta, or name another folder in KDELTA_DATA_DIR",
        )
    with engine.begin() as connection:
        settings.attributes["connection"] = connection
        command.upgrade(settings, "head")


def _explained(error: BaseException | None, doing: str, path: Path) -> LabError | None:
    """SQLite's result code (sqlite.org/rescode.html) in words; None for an error of kdelta."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return _damaged(path.parent, str(error))
    hints = {
        sqlite3.SQLITE_FULL: "free some space, or name a folder elsewhere in KDELTA_DATA_DIR",
        sqlite3.SQLITE_IOERR: "look whether the disk is full or failing; KDELTA_DATA_DIR names a "
        "folder elsewhere",
        sqlite3.SQLITE_READONLY: "make it writable, or name another folder in KDELTA_DATA_DIR",
        sqlite3.SQLITE_CANTOPEN: "make it writable, or name another folder in KDELTA_DATA_DIR",
        sqlite3.SQLITE_PERM: "make it writable, or name another folder in KDELTA_DATA_DIR",
        sqlite3.SQLITE_BUSY: "another process keeps it busy; end that, then try again",
        sqlite3.SQLITE_LOCKED: "another process keeps it busy; end that, then try again",
    }
    return LabError(f"{doing} {path}: {error}", hints[code]) if code in hints else None


def _damaged(folder: Path, why: str) -> LabError:
    return LabError(
        f"the store in {folder} is damaged: {why}",
        f"move {DATABASE}* in that folder out of the way (runs are made again when they are "
        "asked for), or bring them back from a backup",
    )


def this_process() -> str:
    """What names this process among all that ever run on this host."""
    return _name(os.getpid())


def is_alive(owner: str) -> bool:
    """Whether the process of that name is still there."""
    _, _, pid = owner.partition(" ")
    pid = pid.partition(" ")[0]
    return pid.isdigit() and _name(int(pid)) == owner


def _name(pid: int) -> str:
    return f"{_boot()} {pid} {_start_ticks(pid)}"


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return "-"


def _start_ticks(pid: int) -> str:
    """When a process started, in ticks since boot: field 22 of proc(5)'s stat."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return "-"
    # The second field is the program's name in parentheses, which may hold spaces and parentheses.
    fields = stat.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] != "Z" else "-"
