# SPDX-License-Identifier: GPL-2.0-or-later
"""What ties a row to its blobs: a hash in it over all that it says."""

from collections.abc import Mapping
from typing import Any

from kdelta.spec.identity import identity

_RUNS = (
    "id",
    "key",
    "kernel_identity",
    "kernel_spec",
    "kernel_release",
    "machine",
    "workload",
    "workload_identity",
    "perturbation",
    "status",
    "detail",
    "started",
    "seconds",
    "counts_blob",
    "console_blob",
    "attachments",
    "command",
)
_STUDIES = (
    "id",
    "kind",
    "question",
    "command",
    "started",
    "version",
    "report_blob",
    "operations",
    "answer",
)
TIED = {"runs": _RUNS, "studies": _STUDIES}
"""The columns by table: all but the owner of a run, which says nothing of it once it has ended."""


def bound_of(row: Mapping[str, Any], table: str = "runs") -> str:
    """Return the hash for a row whose JSON columns are decoded; empty for a run that goes on."""
    if table == "runs" and row["status"] is None:
        return ""
    return identity({name: _plain(row[name]) for name in TIED[table]})


def _plain(value: Any) -> Any:
    """A value as SQLite gives it back: it has no whole seconds."""
    return float(value) if isinstance(value, int) else value
