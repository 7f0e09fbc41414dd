# SPDX-License-Identifier: GPL-2.0-or-later
"""What a stored run counted, or why it counted nothing."""

from collections.abc import Mapping

from kdelta.counts.model import RegionCounts, RunCounts
from kdelta.spec.errors import UserError
from kdelta.spec.run import RunStatus
from kdelta.store.model import Run
from kdelta.store.store import Store
from kdelta.studies.lab.command import COMMAND_REGION


def own_regions(known: Mapping[str, RegionCounts]) -> dict[str, RegionCounts]:
    """Those that are shown unasked: around a command that marks its own regions there is one with
    what it did to start.
    """
    own = {name: region for name, region in known.items() if name != COMMAND_REGION}
    return own or dict(known)


def run_counts(run: Run, store: Store) -> RunCounts:
    """What a run counted; UserError for one that did not go well, LabError when it is gone."""
    if run.status is not RunStatus.OK:
        reason = f": {run.detail}" if run.detail else ""
        raise UserError(
            f"run {run.id} counted nothing, it ended with {run.word}{reason}",
            f"kdelta show {run.id} has all that is known of it",
        )
    counts = store.counts(run)
    if not counts.regions:
        raise UserError(
            f"run {run.id} has no region: its workload marked none",
            "kdelta.h says how a program marks its regions",
        )
    return counts
