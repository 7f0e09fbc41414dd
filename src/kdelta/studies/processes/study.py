# SPDX-License-Identifier: GPL-2.0-or-later
"""A run by process: its calls are followed in the kernel, from where each task enters it."""

import msgspec

from kdelta.counts.model import merged_regions
from kdelta.infer.profiles.processes import Processes, processes
from kdelta.lab.lab import PROFILES, Lab, profiles_of
from kdelta.lab.work import Work
from kdelta.store.model import Run
from kdelta.store.store import Store
from kdelta.studies.profile.study import kernel_run
from kdelta.studies.recorded.recorded import recorded_run, run_counts


def run_processes(run: Run, store: Store) -> tuple[Processes, ...]:
    """By process, each region of a run that recorded its calls; nothing of another one. LabError
    if what is kept of it does not add up.
    """
    if PROFILES not in run.attachments:
        return ()
    counts = merged_regions(run_counts(run, store))
    return tuple(processes(one, counts[one.region]) for one in profiles_of(store, run))


async def processes_of_run(run: Run, lab: Lab) -> tuple[Processes, ...]:
    """The same of any run that went well: it is made again unless its calls were recorded."""
    if PROFILES not in run.attachments:
        followed = lab.with_request(msgspec.structs.replace(lab.request, calls="all"))
        run = (await recorded_run(run, followed)).kept
    return run_processes(run, lab.store)


async def processes_of_kernel(
    spec: str, what: Work, lab: Lab
) -> tuple[Run | None, tuple[Processes, ...]]:
    """Of a kernel under a workload or a command, its run with that; no run without a kernel."""
    followed = lab.with_request(msgspec.structs.replace(lab.request, calls="kernel"))
    done = await kernel_run(spec, what, followed)
    if done is None or done.counts is None:
        return (done.run if done else None), ()
    return done.run, run_processes(done.run, lab.store)
