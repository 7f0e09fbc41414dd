# SPDX-License-Identifier: GPL-2.0-or-later
"""The tables as the newest migration leaves them."""

from kdelta.store.bound import TIED

REVISION = "0005"
"""The newest migration's; a test compares it, and the tables, with the migrations."""

JSON_COLUMNS = frozenset({"machine", "attachments"})

COLUMNS = {
    "runs": frozenset({*TIED["runs"], "owner", "bound"}),
    "studies": frozenset({*TIED["studies"], "bound"}),
}
"""What each table has at least."""

TABLES = (
    """CREATE TABLE runs (
        id VARCHAR(32) NOT NULL,
        key VARCHAR(64) NOT NULL,
        status VARCHAR(32),
        detail TEXT NOT NULL,
        kernel_identity VARCHAR(64) NOT NULL,
        kernel_spec TEXT NOT NULL,
        kernel_release TEXT NOT NULL,
        machine JSON NOT NULL,
        workload TEXT NOT NULL,
        workload_identity VARCHAR(64) NOT NULL,
        perturbation INTEGER NOT NULL,
        started FLOAT NOT NULL,
        seconds FLOAT,
        owner TEXT NOT NULL,
        counts_blob VARCHAR(64),
        console_blob VARCHAR(64),
        attachments JSON NOT NULL,
        command TEXT DEFAULT '' NOT NULL,
        bound VARCHAR(64) DEFAULT '' NOT NULL,
        PRIMARY KEY (id)
    )""",
    "CREATE INDEX runs_by_key ON runs (key, started)",
    "CREATE INDEX runs_by_start ON runs (started)",
    """CREATE TABLE studies (
        id VARCHAR(32) NOT NULL,
        kind VARCHAR(32) NOT NULL,
        question TEXT NOT NULL,
        command TEXT NOT NULL,
        started FLOAT NOT NULL,
        version VARCHAR(32) NOT NULL,
        report_blob VARCHAR(64) NOT NULL,
        operations TEXT DEFAULT '' NOT NULL,
        answer TEXT DEFAULT '' NOT NULL,
        bound VARCHAR(64) DEFAULT '' NOT NULL,
        PRIMARY KEY (id)
    )""",
    "CREATE INDEX studies_by_start ON studies (started)",
    # Which migration the tables are of: alembic's own table.
    """CREATE TABLE alembic_version (
        version_num VARCHAR(32) NOT NULL,
        PRIMARY KEY (version_num)
    )""",
)
