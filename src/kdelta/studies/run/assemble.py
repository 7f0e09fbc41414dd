# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run returns, with what the store knows besides it, as a report."""

from kdelta.counts.model import RunCounts, merged_regions
from kdelta.infer.effects.marks import region_warnings
from kdelta.lab.attachments import FOUND
from kdelta.lab.failed_program import lacked
from kdelta.lab.lab import RunResult
from kdelta.lab.plan import COMMAND_PREFIX, COMMAND_REGION
from kdelta.lab.reports import (
    attachment,
    reported_run,
)
from kdelta.report.model import ReportedRun
from kdelta.spec.run import RunStatus
from kdelta.store.model import Run
from kdelta.store.store import Store
from kdelta.studies.recorded.recorded import own_regions
from kdelta.studies.run.model import RunReport


def done_report(done: RunResult, store: Store) -> RunReport:
    """The report of a run that was just made or found."""
    return _run_report(reported_run(done.run, store, stored=done.stored), done, store)


def stored_report(run: Run, store: Store) -> RunReport:
    """The report of a run of the store."""
    counts = store.counts(run) if run.status is RunStatus.OK else None
    return _run_report(reported_run(run, store), RunResult(run, counts), store)


def _run_report(reported: ReportedRun, done: RunResult, store: Store) -> RunReport:
    regions = merged_regions(done.counts or RunCounts(()))
    stderr = attachment(done.run, "stderr", store)
    is_program = done.counts is not None and done.run.workload.startswith(COMMAND_PREFIX)
    return RunReport(
        run=reported,
        counts=done.counts,
        files=tuple(attachment(done.run, FOUND, store).splitlines()),
        stdout=attachment(done.run, "stdout", store),
        stderr=stderr,
        warnings=(
            *region_warnings(own_regions(regions).values(), COMMAND_REGION),
            *(lacked(stderr) if is_program else ()),
        ),
        means={name: region.mean_own_insns() for name, region in regions.items()},
    )
