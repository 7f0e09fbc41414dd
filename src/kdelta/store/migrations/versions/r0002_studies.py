# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of studies."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Creates the table of studies, which a study enters when its report is there."""
    op.create_table(
        "studies",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("command", sa.Text, nullable=False),
        sa.Column("started", sa.Float, nullable=False),
        sa.Column("version", sa.String(32), nullable=False),
        sa.Column("report_blob", sa.String(64), nullable=False),
    )
    op.create_index("studies_by_start", "studies", ["started"])
