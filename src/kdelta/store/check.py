# SPDX-License-Identifier: GPL-2.0-or-later
"""Looks whether all that the store has is as it was entered, and takes out of use what is not.

What is taken out is kept in the folder `damaged` next to it: rows as JSON lines, blobs as they are.
"""

import contextlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path

from kdelta.host.files import PARTIAL, make_folder, move, remove, remove_left
from kdelta.host.finding import Finding
from kdelta.host.sealed import ENDING, sealed_damage
from kdelta.spec.errors import LabError
from kdelta.store.blobs import Blobs
from kdelta.store.bound import TIED, bound_of
from kdelta.store.database import (
    DATABASE,
    WORDS,
    DamagedError,
    connect,
    explained_errors,
    has_database,
    odd_files,
)
from kdelta.store.owner import is_alive
from kdelta.store.rebuild import rebuild
from kdelta.store.rows import Row, keep_aside, read_row, row_ids
from kdelta.store.store import Store, blobs_locked

DAMAGED = "damaged"


def must_be_whole(folder: Path) -> None:
    """LabError that names the first thing that is wrong with the store in a folder."""
    for one in check_store(folder):
        if one.is_damage:
            raise LabError(
                f"the store is damaged: {one.path}: {one.what}",
                "kdelta check lists all that is; kdelta check --repair takes it out of use",
            )


def check_store(folder: Path, *, repair: bool = False) -> Iterator[Finding]:
    """Yield what is wrong with the store in a folder; LabError for one that cannot be read. Nothing
    writes it meanwhile.

    repair: damaged rows and blobs are set aside; what has whole counts, or a whole report, stays.
    """
    blobs = Blobs(folder / "blobs")
    yield from _odd(folder, repair=repair)
    if odd_files(folder) or (not has_database(folder) and not blobs.names()):
        return
    with contextlib.ExitStack() as stack:
        if os.access(folder, os.W_OK, effective_ids=True):
            stack.enter_context(blobs_locked(folder, alone=True))
        if why := _structure_damage(folder):
            fixed = rebuild(folder, folder / DAMAGED) if repair else ""
            yield Finding(path=folder / DATABASE, what=why, fixed=fixed)
            if not repair:
                return
        with explained_errors("checking", folder):
            # Of a database that lost rows, no blob is known to be of no use.
            check = _Check(folder, blobs, repair=repair, keeps=bool(why))
            stack.callback(check.close)
            yield from check.rows()
            yield from check.orphans()
        yield from _others(folder, repair=repair)


def _odd(folder: Path, *, repair: bool) -> Iterator[Finding]:
    """What lies where a file belongs, and is none: it would be waited for, or read for ever."""
    for path in odd_files(folder):
        fixed = ""
        if repair:
            _move(path, folder / DAMAGED / f"{path.name}.{secrets.token_hex(4)}")
            fixed = f"set aside in {folder / DAMAGED}"
        yield Finding(path=path, what="it is no file", fixed=fixed)


def _structure_damage(folder: Path) -> str:
    """What is wrong with the database's structure; empty if nothing is."""
    if not has_database(folder):
        return "it is missing, and its runs are lost"
    try:
        with Store.open(folder) as store:
            return store.structure_damage()
    except DamagedError as error:
        return error.message


def _others(folder: Path, *, repair: bool) -> Iterator[Finding]:
    """What else lies in the folder: records of searches, and what killed processes left."""
    for path in sorted(folder.glob(f"bisect/*{ENDING}")):
        if why := sealed_damage(path):
            fixed = ""
            if repair:
                _move(path, folder / DAMAGED / path.name)
                fixed = "set aside; failed builds of that search are tried again"
            yield Finding(path=path, what=why, fixed=fixed)
    for path in sorted((*folder.glob(f"*{PARTIAL}"), *folder.glob(f"blobs/*/*{PARTIAL}"))):
        fixed = "removed" if repair and remove_left(path) else ""
        yield Finding(path=path, what="a killed process left it", is_left=True, fixed=fixed)


def _move(path: Path, to: Path) -> None:
    make_folder(to.parent)
    move(path, to)


class _Check:
    """The rows and the blobs of a database whose structure is whole."""

    def __init__(self, folder: Path, blobs: Blobs, *, repair: bool, keeps: bool) -> None:
        self._aside = folder / DAMAGED
        self._blobs = blobs
        self._database = folder / DATABASE
        self._repair = repair
        self._connection = connect(f"{self._database.as_uri()}?mode={'rw' if repair else 'ro'}")
        self._why: dict[str, str] = {}
        self._named: set[str] = set()
        self._unsure: set[str] = set(blobs.names()) if keeps else set()

    def close(self) -> None:
        self._connection.close()

    def rows(self) -> Iterator[Finding]:
        """Rows that are damaged, and those with damaged blobs."""
        for table in TIED:
            for rowid in row_ids(self._connection, table):
                found = read_row(self._connection, table, rowid)
                if found is None:  # another process removed it meanwhile
                    continue
                row, why = found
                if why:
                    self._unsure |= row.blobs()
                    fixed = self._set_row_aside(row)
                    what = f"{WORDS[table]} {row.id}: {why}"
                    yield Finding(path=self._database, what=what, fixed=fixed)
                elif row.values.get("status", "") is None and is_alive(row.values["owner"]):
                    self._named |= row.blobs()
                else:
                    yield from self._blobs_of(row)

    def _blobs_of(self, row: Row) -> Iterator[Finding]:
        """The damaged blobs of a row that is whole."""
        bad = {role: blob for role, blob in row.roles().items() if self._damage(blob)}
        fixed = ""
        if bad and self._repair:
            fixed = self._without(row, bad)
        if not fixed:
            self._named |= row.blobs()
        for role, blob in bad.items():
            what = f"{role} of {WORDS[row.table]} {row.id}: {self._damage(blob)}"
            yield Finding(path=self._blobs.path(blob), what=what, fixed=fixed)

    def _damage(self, blob: str) -> str:
        """What is wrong with a blob; empty if nothing is."""
        if blob not in self._why:
            self._why[blob] = ""
            try:
                self._blobs.get(blob)
            except LabError:
                there = self._blobs.path(blob).exists()
                self._why[blob] = "its content is not what was stored" if there else "it is missing"
        return self._why[blob]

    def _without(self, row: Row, bad: Mapping[str, str]) -> str:
        """Takes damaged blobs out of use, and a row that is nothing without them; what was done."""
        for blob in set(bad.values()):
            self._set_blob_aside(blob)
        if {"counts", "report"} & bad.keys():
            self._unsure |= row.blobs()
            return self._set_row_aside(row)
        attachments = {
            name: blob for name, blob in row.values["attachments"].items() if name not in bad
        }
        console = None if "console" in bad else row.values["console_blob"]
        changed = {**row.values, "attachments": attachments, "console_blob": console}
        self._connection.execute(
            "UPDATE runs SET console_blob = ?, attachments = ?, bound = ? WHERE rowid = ?",
            [console, json.dumps(attachments), bound_of(changed), row.rowid],
        )
        self._named |= row.blobs() - set(bad.values())
        return "taken out of the run, whose counts are whole"

    def _set_row_aside(self, row: Row) -> str:
        if not self._repair:
            return ""
        keep_aside(row, self._aside)
        self._connection.execute(f"DELETE FROM {row.table} WHERE rowid = ?", [row.rowid])
        return f"set aside in {self._aside}"

    def orphans(self) -> Iterator[Finding]:
        """Blobs that no row names; those of rows that were set aside are set aside, too."""
        for name, path in self._blobs.names().items():
            if name in self._named or (name in self._unsure and not self._repair):
                continue
            fixed = ""
            if self._repair and name in self._unsure:
                self._set_blob_aside(name)
                continue
            if self._repair:
                remove(path)
                fixed = "removed"
            what = "no run and no study has this blob"
            yield Finding(path=path, what=what, is_left=True, fixed=fixed)

    def _set_blob_aside(self, name: str) -> None:
        if (path := self._blobs.path(name)).exists():
            _move(path, self._aside / "blobs" / name)
