# SPDX-License-Identifier: GPL-2.0-or-later
"""A stored run as a profile."""

from collections.abc import Mapping, Sequence

from kdelta.counts.model import RegionCounts, RunCounts, merged_regions
from kdelta.infer.profile import Selection, chosen_regions, region_profile
from kdelta.report.model import ReportedRun
from kdelta.report.profile_model import ProfileReport
from kdelta.spec.errors import UserError
from kdelta.spec.run import RunStatus
from kdelta.store.model import Run
from kdelta.store.store import Store
from kdelta.studies.command import COMMAND_REGION


def run_profile(
    run: Run, store: Store, regions: Sequence[str] = (), selection: Selection | None = None
) -> ProfileReport:
    """The profile of a run as far as its counts tell it. `regions`: those that are looked at.

    UserError for a run that did not go well, and for a region that it has not; LabError when its
    counts are gone.
    """
    counts = run_counts(run, store)
    known = merged_regions(counts)
    chosen = chosen_regions(known if regions else own_regions(known), regions)
    return ProfileReport(
        run=ReportedRun(run, from_store=True),
        regions=tuple(region_profile(region) for region in chosen.values()),
        selection=selection or Selection(),
        left_out=tuple(name for name in known if name not in chosen),
        warnings=counts.warnings,
    )


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
