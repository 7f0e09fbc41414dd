# SPDX-License-Identifier: GPL-2.0-or-later
"""Hashes over whole rows, of runs and of studies."""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

from kdelta.store.bound import bound_of
from kdelta.store.migrations.versions.r0004_bound import bound_then

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Adds the column to studies; what was tied to its row is tied to all of it. A run that was
    changed before stays as it is, and so is found.
    """
    op.add_column("studies", sa.Column("bound", sa.String(64), nullable=False, server_default=""))
    connection = op.get_bind()
    runs = connection.execute(sa.text("SELECT * FROM runs WHERE status IS NOT NULL")).mappings()
    for row in runs.all():
        found = {**row, "attachments": json.loads(row["attachments"])}
        if row["bound"] == bound_then(found):
            found["machine"] = json.loads(row["machine"])
            _bind("runs", found)
    for row in connection.execute(sa.text("SELECT * FROM studies")).mappings().all():
        _bind("studies", dict(row))


def _bind(table: str, row: dict[str, Any]) -> None:
    op.get_bind().execute(
        sa.text(f"UPDATE {table} SET bound = :bound WHERE id = :id"),
        {"bound": bound_of(row, table), "id": row["id"]},
    )
