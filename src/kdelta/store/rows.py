# SPDX-License-Identifier: GPL-2.0-or-later
"""Rows of the store as they are, damaged ones included."""

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import msgspec

from kdelta.host.files import lab_errors, make_folder
from kdelta.spec.errors import LabError
from kdelta.store.blobs import must_be_name
from kdelta.store.bound import bound_of
from kdelta.store.database import blobs_in
from kdelta.store.model import Run, Study
from kdelta.store.tables import JSON_COLUMNS

_TYPES: dict[str, type[Run] | type[Study]] = {"runs": Run, "studies": Study}


class Row(msgspec.Struct, frozen=True):
    """A row of a table, by column; JSON columns are decoded if they can be."""

    table: str
    rowid: int
    values: dict[str, Any]

    @property
    def id(self) -> str:
        """Return its id, as far as it can be printed."""
        return f"{self.values.get('id')!s:.40}"

    def roles(self) -> dict[str, str]:
        """The blobs of a row that is whole, by what they are."""
        if self.table == "studies":
            return {"report": self.values["report_blob"]}
        own = {"counts": self.values["counts_blob"], "console": self.values["console_blob"]}
        attachments: dict[str, str] = self.values["attachments"]
        return {role: blob for role, blob in own.items() if blob} | attachments

    def blobs(self) -> set[str]:
        """The blobs that it names, whatever else it says."""
        return {blob for value in self.values.values() for blob in blobs_in(value)}


def row_ids(connection: sqlite3.Connection, table: str) -> list[int]:
    """All rows of a table, by SQLite's number of each."""
    return [rowid for (rowid,) in connection.execute(f"SELECT rowid FROM {table} NOT INDEXED")]


def read_row(connection: sqlite3.Connection, table: str, rowid: int) -> tuple[Row, str] | None:
    """Return a row, and what is wrong with it: empty if it is as it was entered. None if there is
    none.
    """
    # Text that is no UTF-8 any more is read, too.
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    query = f"SELECT * FROM {table} WHERE rowid = ?"
    if (found := connection.execute(query, [rowid]).fetchone()) is None:
        return None
    values = dict(found)
    try:
        values |= {name: json.loads(values[name]) for name in JSON_COLUMNS & values.keys()}
        if values["bound"] != bound_of(values, table):
            return Row(table, rowid, values), "its row was changed after it was entered"
        msgspec.convert({**values, "alive": False}, _TYPES[table])
        for name in Row(table, rowid, values).roles().values():
            must_be_name(name)
    except (TypeError, ValueError, RecursionError, KeyError, LabError) as error:
        return Row(table, rowid, values), f"its row cannot be read: {error}"
    return Row(table, rowid, values), ""


def keep_aside(row: Row, folder: Path) -> None:
    """Adds what a row says to a file of a folder, before it is removed."""
    path = make_folder(folder) / f"{row.table}.jsonl"
    with lab_errors("writing", path), path.open("a", encoding="ascii") as file:
        file.write(json.dumps(row.values, default=repr) + "\n")
        file.flush()
        os.fsync(file.fileno())
