# SPDX-License-Identifier: GPL-2.0-or-later
"""Steps from an older store's tables to the newest: alembic's, which takes long to import."""

import sqlite3
from pathlib import Path

import sqlalchemy as sa
from alembic import command, config, script

from kdelta.spec.errors import LabError
from kdelta.store.tables import REVISION


def take_steps(connection: sqlite3.Connection, folder: Path, found: str) -> None:
    """Takes the steps from the revision that was found, all or none.

    LabError for a store that a newer kdelta wrote.
    """
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
    engine = sa.create_engine("sqlite://", creator=lambda: connection, poolclass=sa.StaticPool)
    try:
        with engine.begin() as begun:
            begun.exec_driver_sql("BEGIN")
            settings.attributes["connection"] = begun
            command.upgrade(settings, "head")
    except sa.exc.DatabaseError as error:
        raise error.orig or error from error
