# SPDX-License-Identifier: GPL-2.0-or-later
"""Copies of a store, made while others write it."""

import contextlib
import os
import re
import secrets
import shutil
import sqlite3
from pathlib import Path

from kdelta.host.files import (
    PARTIAL,
    lab_errors,
    make_folder,
    matching,
    name_folder,
    partial_folder,
    remove_left,
)
from kdelta.spec.errors import UserError
from kdelta.store.blobs import Blobs
from kdelta.store.check import must_be_whole
from kdelta.store.database import (
    DATABASE,
    blobs_named,
    connect,
    explained_errors,
    has_database,
    is_own,
)
from kdelta.store.store import Store, blobs_locked


def back_up(folder: Path, target: Path) -> int:
    """Makes a new folder a copy of the store in `folder`, compared with its hashes; returns how
    many runs and studies it has. UserError if there is something at that path already, LabError for
    a store that is damaged or cannot be copied.
    """
    if os.path.lexists(target):
        raise UserError(
            f"cannot write a backup to {target}: it is there already", "name a new folder"
        )
    if is_own(folder, target) or target.name.endswith(PARTIAL):
        raise UserError(
            f"cannot write a backup to {target}: it would be part of the store, or left over",
            f"name a folder outside of {folder}, whose name does not end with {PARTIAL}",
        )
    if not has_database(folder):
        raise UserError(
            f"there is no store in {folder} to back up", "kdelta compare and kdelta run make one"
        )
    # A name of its own: what the user has there stays, and so does what another process writes.
    partial = target.with_name(f"{target.name}.{secrets.token_hex(4)}{PARTIAL}")
    left = re.compile(rf"{re.escape(target.name)}\.[0-9a-f]{{8}}{re.escape(PARTIAL)}")
    for one in matching(target.parent, "*"):  # of backups that were killed
        if left.fullmatch(one.name) and (one / DATABASE).is_file():
            remove_left(one)
    with contextlib.ExitStack() as stack:
        if os.access(folder, os.W_OK, effective_ids=True):
            # Others may add blobs meanwhile, and not remove any.
            stack.enter_context(blobs_locked(folder, alone=False))
        with partial_folder(partial):
            with Store.open(folder) as store, explained_errors("copying", folder):
                copy = stack.enter_context(contextlib.closing(connect(partial / DATABASE)))
                store.copy_rows(copy)
                count = _copy_blobs(folder, partial, copy)
                copy.close()
            must_be_whole(partial)
            name_folder(partial, target)
    return count


def _copy_blobs(folder: Path, partial: Path, copy: sqlite3.Connection) -> int:
    of, to = Blobs(folder / "blobs"), Blobs(partial / "blobs")
    there = of.names()
    for name in sorted(blobs_named(copy) & there.keys()):
        path = to.path(name)
        make_folder(path.parent)
        with lab_errors("copying", there[name]):
            shutil.copyfile(there[name], path)
    for path in folder.glob("bisect/*"):
        with lab_errors("copying", path):
            shutil.copyfile(path, make_folder(partial / "bisect") / path.name)
    (count,) = copy.execute(
        "SELECT (SELECT count(*) FROM runs) + (SELECT count(*) FROM studies)"
    ).fetchone()
    return int(count)
