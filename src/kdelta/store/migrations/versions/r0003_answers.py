# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line of a run; the operations and the answer of a study."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_ADDED = (("runs", "command"), ("studies", "operations"), ("studies", "answer"))


def upgrade() -> None:
    """Adds the columns; they are empty in rows that are there already."""
    for table, name in _ADDED:
        op.add_column(table, sa.Column(name, sa.Text, nullable=False, server_default=""))
