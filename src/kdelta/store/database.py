# SPDX-License-Identifier: GPL-2.0-or-later
"""The store's database: SQLite's, opened, made and migrated, and what it refuses in words."""

import contextlib
import fcntl
import os
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from kdelta.host.files import has_inodes, is_odd, lab_errors, open_regular
from kdelta.spec.errors import LabError
from kdelta.store.tables import COLUMNS, REVISION, TABLES

DATABASE = "store.db"
BLOBS_LOCK = "blobs.lock"
_MIGRATION_LOCK = "store.lock"
_FILES = (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", BLOBS_LOCK, _MIGRATION_LOCK)
WORDS = {"runs": "run", "studies": "study"}
_BLOB = re.compile(r"\b[0-9a-f]{64}\b")
_VERSION = re.compile(r"\w+")
_BUSY_SECONDS = 30.0
_OF_DAMAGE = re.compile(r"no such (table|column)|table .* has no column|Could not decode to UTF-8")
"""What SQLite says of names and text that are not those that were written."""


@contextlib.contextmanager
def explained_errors(doing: str, folder: Path) -> Iterator[None]:
    """Turns what SQLite refuses into a LabError with advice."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if (explained := _explained(error, doing, folder / DATABASE)) is None:
            raise
        raise explained from error
    except (ValueError, RecursionError) as error:  # a JSON column that holds none
        raise damaged(folder, str(error)) from error


def is_own(folder: Path, path: Path) -> bool:
    """Return whether a path is one that the store in a folder uses itself."""
    whole, own = Path(os.path.realpath(path)), Path(os.path.realpath(folder))
    if whole == own or own not in whole.parents:
        return whole == own
    first = whole.relative_to(own).parts[0]
    return first.startswith(DATABASE) or first in {*_FILES, "blobs", "bisect", "damaged"}


def has_database(folder: Path) -> bool:
    """Return whether there is a database in a folder; LabError for one that cannot be read."""
    path = folder / DATABASE
    with lab_errors("opening", path):
        return path.is_file()


def odd_files(folder: Path) -> list[Path]:
    """Return what lies where the store's files belong, and is none."""
    return [path for name in _FILES if is_odd(path := folder / name)]


def must_be_files(folder: Path) -> None:
    """Raise LabError for what lies where the store's files belong, and is none."""
    if found := odd_files(folder):
        raise LabError(
            f"cannot open the store in {folder}: {found[0].name} is no file",
            "kdelta check --repair sets it aside, and makes what belongs there",
        )


def connect(path: Path | str) -> sqlite3.Connection:
    """Opens a database: a path, or a URI as text."""
    # Python's module would begin transactions automatically, and not around changes of tables.
    connection = sqlite3.connect(
        path,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        uri=isinstance(path, str),
    )
    connection.row_factory = sqlite3.Row
    return connection


def must_not_be_emptied(connection: sqlite3.Connection, folder: Path) -> None:
    """Raise LabError for a database that has lost its tables, or their version."""
    # Looked at first: a process that makes the store makes its tables before its blobs.
    has_blobs = any(folder.glob("blobs/*/*"))
    with connection:
        connection.execute("BEGIN")  # what follows is of one state
        is_new = revision(connection) is None
        tables = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table'").fetchone()
    if is_new and tables:
        raise damaged(folder, "the version of its tables is lost")
    if is_new and has_blobs:
        raise damaged(folder, f"{DATABASE} is empty, and its runs are lost")


def must_have_tables(connection: sqlite3.Connection, folder: Path) -> None:
    """Raise LabError for a database of this version whose tables lack columns, and for one with
    views or triggers, which answer or change what was not asked for.
    """
    made = connection.execute("SELECT name, type, sql FROM sqlite_master WHERE type <> 'index'")
    for name, kind, text in made.fetchall():
        if kind != "table" or not is_plain(text):
            raise damaged(folder, f"there is a {kind}, {name}, that kdelta did not make")
    for table, wanted in COLUMNS.items():
        there = {one["name"] for one in connection.execute(f"PRAGMA table_info({table})")}
        if lacking := sorted(wanted - there):
            raise damaged(folder, f"table {table} has no column {lacking[0]}")
        connection.execute(f"SELECT rowid FROM {table} LIMIT 0")  # not every table has one


def is_plain(text: object) -> bool:
    """Return whether what made a table made it of rows, and not of what a module answers."""
    return str(text).split()[:2] == ["CREATE", "TABLE"]


def prepare(connection: sqlite3.Connection) -> None:
    """Let readers read while one writes; neither a kill nor a power cut harms what is there."""
    # WAL lets readers read while one writes; FULL, since a run that was reported is there after a
    # power cut.
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")


def migrate(connection: sqlite3.Connection, folder: Path) -> None:
    """Makes the tables, or brings those of an older version up to date."""
    if revision(connection) == REVISION:
        return
    lock = folder / _MIGRATION_LOCK
    with (
        lab_errors("opening", lock),
        os.fdopen(open_regular(lock, os.O_WRONLY | os.O_CREAT), "wb") as file,
    ):
        # Another process may be migrating now; the second process finds it done.
        fcntl.flock(file, fcntl.LOCK_EX)
        if (found := revision(connection)) is None:
            make_tables(connection)
        elif not _VERSION.fullmatch(found):
            raise damaged(folder, "the version of its tables is lost")
        elif found != REVISION:
            from kdelta.store.migrate import take_steps  # noqa: PLC0415  (it imports much)

            take_steps(connection, folder, found)


def revision(connection: sqlite3.Connection) -> str | None:
    """The revision of the tables; None where there are none."""
    there = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'alembic_version'"
    if connection.execute(there).fetchone() is None:
        return None
    found = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return None if found is None else str(found[0])


def make_tables(connection: sqlite3.Connection) -> None:
    """Makes a store's tables as the newest migration would leave them, which takes less time."""
    with connection:
        connection.execute("BEGIN")
        for statement in TABLES:
            connection.execute(statement)
        connection.execute("INSERT INTO alembic_version VALUES (?)", [REVISION])


def _explained(error: BaseException | None, doing: str, path: Path) -> LabError | None:
    """SQLite's result code (sqlite.org/rescode.html) in words; None for an error of kdelta."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB} or _OF_DAMAGE.match(str(error)):
        return damaged(path.parent, str(error))
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
    if code == sqlite3.SQLITE_CANTOPEN and not has_inodes(path.parent):
        hints[code] = "the disk has no inodes left, so remove files"
    return LabError(f"{doing} {path}: {error}", hints[code]) if code in hints else None


class DamagedError(LabError):
    """What the database says is not what was written."""


def damaged(folder: Path, why: str) -> DamagedError:
    """The error about the database."""
    return DamagedError(
        f"the store in {folder} is damaged: {why} ({folder / DATABASE})",
        "kdelta check --repair keeps the runs and studies that are whole, and sets the rest aside; "
        "runs are made again when they are asked for",
    )


def row_damaged(folder: Path, table: str, row_id: object) -> DamagedError:
    """The error about a row whose hash is not that of what it says."""
    return DamagedError(
        f"{WORDS[table]} {row_id!s:.40} in {folder / DATABASE} is damaged: its row was changed "
        "after it was entered",
        "kdelta check --repair sets it aside; a run is made again when it is asked for",
    )


def blobs_named(connection: sqlite3.Connection) -> set[str]:
    """The blobs that rows name, damaged ones included."""
    columns = {"runs": "counts_blob, console_blob, attachments", "studies": "report_blob"}
    return {
        name
        for table, names in columns.items()
        for row in connection.execute(f"SELECT {names} FROM {table}")
        for value in row
        for name in blobs_in(value)
    }


def blobs_in(value: object) -> list[str]:
    """What looks like a blob's hash in a column."""
    return _BLOB.findall(str(value))
