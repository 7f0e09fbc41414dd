# SPDX-License-Identifier: GPL-2.0-or-later
"""A recorded run as what exports are made from."""

import msgspec
import numpy as np

from kdelta.counts.model import CONTEXTS
from kdelta.counts.profile import Profile
from kdelta.counts.source_lines import SourceLines
from kdelta.infer.profiles.profile import Selection, code_part
from kdelta.lab.lab import Lab
from kdelta.lab.progress import Progress
from kdelta.lab.work import Work
from kdelta.report.exports import Naming
from kdelta.store.model import Run
from kdelta.studies.profile.study import (
    ProfileRequest,
    chosen_counts,
    kernel_run,
    with_work,
)
from kdelta.studies.profile.views import lines_of, profiles_named
from kdelta.studies.recorded.recorded import Recorded, recorded_run, run_counts


class ExportedRun(msgspec.Struct, frozen=True, eq=False):
    """A run with its calls, and the regions of it that are looked at."""

    one: Recorded
    regions: tuple[str, ...]


async def run_recording(run: Run, request: ProfileRequest, lab: Lab) -> ExportedRun:
    """A stored run, made again if its calls were not recorded. Raises as run_profile does."""
    regions = tuple(chosen_counts(run_counts(run, lab.store), request.regions))
    return ExportedRun(await recorded_run(run, lab.with_request(request.recording)), regions)


async def kernel_recording(
    spec: str, what: Work, request: ProfileRequest, lab: Lab
) -> ExportedRun | Run | None:
    """The run of a kernel. One that failed is returned as it is; None if there is no kernel."""
    done = await kernel_run(spec, what, lab.with_request(request.recording))
    if done is None or done.counts is None:
        return done.run if done else None
    found = await run_recording(done.run, request, lab)
    one = await with_work(found.one, what, lab.with_request(request.lab))
    return ExportedRun(one, found.regions)


async def exportable(
    recording: ExportedRun,
    selection: Selection,
    progress: Progress,
    *,
    column: str = "insns",
    source: bool = False,
    command: str = "",
) -> tuple[list[Profile], Naming]:
    """What is exported of a run, and what is reported of it. `source`: with lines."""
    one = recording.one
    profiles = profiles_named(one, recording.regions)
    lines = await lines_of(one, profiles, selection, progress) if source else SourceLines()
    run = one.run
    machine = ", ".join(f"{name} {fact}" for name, fact in run.machine.items() if fact != "")
    return [selected(profile, selection) for profile in profiles], Naming(
        kernel=run.kernel_spec,
        release=run.kernel_release,
        machine=machine,
        workload=run.workload,
        command=command,
        run=run.id,
        column=column,
        lines=lines,
    )


def selected(profile: Profile, selection: Selection) -> Profile:
    """The profile with the costs alone of what is looked at. Paths of calls stay whole."""
    parts = np.array([code_part(f.origin) in selection.parts for f in profile.functions], bool)
    contexts = np.array([one in selection.contexts for one in CONTEXTS], bool)
    rows = profile.rows
    kept = parts[profile.row_function()] & contexts[profile.tree.context[rows.node]]
    columns = {name: getattr(rows, name)[kept] for name in rows.__struct_fields__}
    return msgspec.structs.replace(profile, rows=type(rows)(**columns))
