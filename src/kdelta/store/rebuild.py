# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes a new database of the rows that can be read of a damaged one."""

import contextlib
import json
import shutil
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from kdelta.host.files import PARTIAL, lab_errors, make_folder, remove
from kdelta.store.bound import TIED
from kdelta.store.database import DATABASE, connect, explained_errors, is_plain, make_tables
from kdelta.store.rows import Row, keep_aside, read_row
from kdelta.store.tables import JSON_COLUMNS

_LEAST_ROW_BYTES = 100
"""Of an id and the hashes in it: a database cannot have more rows than that allows."""


def rebuild(folder: Path, aside: Path) -> str:
    """Puts a database with all whole rows in the place of the damaged one; returns what was done.

    The damaged one is kept in a folder of its own in `aside`.
    """
    path, partial = folder / DATABASE, folder / f"{DATABASE}{PARTIAL}"
    kept = make_folder(aside / time.strftime("%Y%m%d-%H%M%S", time.gmtime()))
    with lab_errors("copying", path):
        for one in folder.glob(f"{DATABASE}*"):
            shutil.copy2(one, kept / one.name)
    remove(partial)
    with explained_errors("making", folder), contextlib.closing(connect(partial)) as new:
        make_tables(new)
        count = _copy_rows(kept / DATABASE, new, aside)
        _replace(path, partial, new)
    remove(partial)
    return f"made again of {count} whole rows; the damaged one is in {kept}"


def _copy_rows(damaged: Path, new: sqlite3.Connection, aside: Path) -> int:
    count = 0
    with (
        contextlib.suppress(sqlite3.DatabaseError),
        contextlib.closing(connect(damaged)) as old,
        new,
    ):
        new.execute("BEGIN")
        for row, why in _rows(old, damaged.stat().st_size):
            if why:
                keep_aside(row, aside)
            else:
                _insert(new, row)
                count += 1
    return count


def _rows(old: sqlite3.Connection, size: int) -> Iterator[tuple[Row, str]]:
    """The rows that can be read, each looked up alone: those on damaged pages cannot."""
    made = old.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
    tables = {name for name, text in made if is_plain(text)}
    for table in sorted(tables & TIED.keys()):  # what else is called so may go on for ever
        for rowid in _row_ids(old, table, size // _LEAST_ROW_BYTES):
            with contextlib.suppress(sqlite3.DatabaseError):
                if found := read_row(old, table, rowid):
                    yield found


def _row_ids(old: sqlite3.Connection, table: str, most: int) -> list[int]:
    """The numbers that rows may have: those that can be read from either end; where neither reaches
    the other one, also all up to the most rows that there can be.
    """
    found: set[int] = set()
    for order in ("ASC", "DESC"):
        try:
            for (rowid,) in old.execute(f"SELECT rowid FROM {table} ORDER BY rowid {order}"):
                found.add(rowid)
        except sqlite3.DatabaseError:
            continue
        return sorted(found)
    return sorted({*found, *range(1, most + 1)})


def _insert(new: sqlite3.Connection, row: Row) -> None:
    values = {
        name: json.dumps(value) if name in JSON_COLUMNS else value
        for name, value in row.values.items()
    }
    marks = ", ".join("?" * len(values))
    names = ", ".join(values)
    with contextlib.suppress(sqlite3.IntegrityError):  # two pages that are the same
        new.execute(f"INSERT INTO {row.table} ({names}) VALUES ({marks})", [*values.values()])


def _replace(path: Path, partial: Path, new: sqlite3.Connection) -> None:
    """Has the new database's content where the damaged one is."""
    try:
        # In place, so that other processes that have it open see the new content.
        with contextlib.closing(connect(path)) as old:
            new.backup(old)
            old.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.DatabaseError:
        with lab_errors("replacing", path):
            for ending in ("-wal", "-shm"):
                path.with_name(path.name + ending).unlink(missing_ok=True)
            partial.replace(path)
