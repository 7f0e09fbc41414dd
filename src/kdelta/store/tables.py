# SPDX-License-Identifier: GPL-2.0-or-later
"""The tables as the newest migration leaves them."""

import sqlalchemy as sa

REVISION = "0002"
"""The newest migration's; a test compares it, and the tables, with the migrations."""

metadata = sa.MetaData()

runs = sa.Table(
    "runs",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("key", sa.String(64), nullable=False),
    sa.Column("status", sa.String(32), nullable=True),
    sa.Column("detail", sa.Text, nullable=False),
    sa.Column("kernel_identity", sa.String(64), nullable=False),
    sa.Column("kernel_spec", sa.Text, nullable=False),
    sa.Column("kernel_release", sa.Text, nullable=False),
    sa.Column("machine", sa.JSON, nullable=False),
    sa.Column("workload", sa.Text, nullable=False),
    sa.Column("workload_identity", sa.String(64), nullable=False),
    sa.Column("perturbation", sa.Integer, nullable=False),
    sa.Column("started", sa.Float, nullable=False),
    sa.Column("seconds", sa.Float, nullable=True),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("counts_blob", sa.String(64), nullable=True),
    sa.Column("console_blob", sa.String(64), nullable=True),
    sa.Column("attachments", sa.JSON, nullable=False),
    sa.Index("runs_by_key", "key", "started"),
    sa.Index("runs_by_start", "started"),
)

studies = sa.Table(
    "studies",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("question", sa.Text, nullable=False),
    sa.Column("command", sa.Text, nullable=False),
    sa.Column("started", sa.Float, nullable=False),
    sa.Column("version", sa.String(32), nullable=False),
    sa.Column("report_blob", sa.String(64), nullable=False),
    sa.Index("studies_by_start", "started"),
)

alembic_version = sa.Table(
    "alembic_version", metadata, sa.Column("version_num", sa.String(32), primary_key=True)
)
"""Which migration the tables are of: alembic's own table."""
