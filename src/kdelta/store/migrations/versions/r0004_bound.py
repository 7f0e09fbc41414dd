# SPDX-License-Identifier: GPL-2.0-or-later
"""The hash that ties a run to its blobs."""

import json
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from alembic import op

from kdelta.spec.identity import identity

revision = "0004"
down_revision = "0003"

_TIED = (
    "id",
    "key",
    "kernel_identity",
    "workload_identity",
    "perturbation",
    "status",
    "counts_blob",
    "attachments",
)


def bound_then(row: Mapping[str, Any]) -> str:
    """Return the hash for a row whose JSON columns are decoded, as this revision had it."""
    return identity({name: row[name] for name in _TIED})


def upgrade() -> None:
    """Adds the column; runs that have ended are tied to what they have now."""
    op.add_column("runs", sa.Column("bound", sa.String(64), nullable=False, server_default=""))
    connection = op.get_bind()
    rows = connection.execute(sa.text("SELECT * FROM runs WHERE status IS NOT NULL")).mappings()
    for row in rows.all():
        bound = bound_then({**row, "attachments": json.loads(row["attachments"])})
        connection.execute(
            sa.text("UPDATE runs SET bound = :bound WHERE id = :id"),
            {"bound": bound, "id": row["id"]},
        )
