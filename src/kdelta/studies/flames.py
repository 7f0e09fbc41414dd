# SPDX-License-Identifier: GPL-2.0-or-later
"""The profiles that a study's page shows as flame graphs: recorded, and found in the store."""

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec

from kdelta.counts.profile import Profile
from kdelta.host.command import quiet
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.lab.cpus import lab_like
from kdelta.lab.found import with_found_files
from kdelta.lab.lab import PROFILES, Lab, profiles_of
from kdelta.lab.work import Work
from kdelta.report.flame import Flame, flames
from kdelta.report.model import ReportedRun
from kdelta.report.stored import Stored
from kdelta.spec.errors import KdeltaError, LabError, leaves
from kdelta.store.store import Store
from kdelta.studies.compare.model import CompareReport
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.diff.model import DiffReport
from kdelta.studies.gate.document import GateReport
from kdelta.studies.profile.model import ProfileReport
from kdelta.studies.run.model import RunReport


async def record_profiles(request: CompareRequest, lab: Lab) -> None:
    """Sees to it that the store has profiles of one run of each kernel of a comparison, on the
    machine of its first CPU. It adds to a report that is done: so what goes wrong is reported, and
    not raised. Kernels that cannot be had are left out, since the comparison says why.
    """
    try:
        await _record(request, lab)
    except* KdeltaError as errors:
        for error in leaves(errors):
            lab.progress.log(f"no profiles for flame graphs: {error}")


async def _record(request: CompareRequest, lab: Lab) -> None:
    lab = lab.with_request(request.lab)
    asked = msgspec.structs.replace(
        request.lab, perturbations=1, calls="all", rerun=False, trace=False, data_lines=False
    )
    followed = lab.with_request(lab_like(asked, next(iter(request.cpus), None)))
    kernels = []
    for spec in dict.fromkeys((request.base, *request.others)):
        with contextlib.suppress(KdeltaError):
            found = followed.kernel(spec)
            kernels += [] if isinstance(found, NoKernel) else [found]
    work = Work(request.workload, request.operations, request.program)
    work = await with_found_files(work, kernels, lab)
    works = work.plans(kernels, request.lab, lab.progress.log)
    settled = await followed.settled(kernels, works)
    await settled.runs(kernels, works)


def flames_of(
    stored: Stored, store: Store, log: Callable[[str], None] = quiet
) -> tuple[Flame, ...]:
    """The flame graphs of a study whose runs have profiles in the store; none if they have none, or
    if those are lost: that is reported.
    """
    try:
        return tuple(_flames(stored, store))
    except LabError as error:
        log(f"no flame graphs: {error.message}")
        return ()


def _flames(stored: Stored, store: Store) -> Iterator[Flame]:
    match stored.reports[0]:
        case CompareReport() as report:
            yield from _of_comparison(report, store)
        case GateReport(compared=(CompareReport() as report, *_)):
            yield from _of_comparison(report, store)
        case RunReport() as report:
            yield from flames(_profiles((report.run,), store), (), ("run",))
        case ProfileReport() as report:
            names = [region.name for region in report.regions]
            yield from flames(_profiles((report.run,), store, names), (), ("run",))
        case DiffReport() as report:
            names = [region.name for region in report.b_regions]
            a, b = (_profiles((run,), store, names) for run in (report.a, report.b))
            yield from flames(a, b, ("A", "B")) if b else ()


def _of_comparison(report: CompareReport, store: Store) -> Iterator[Flame]:
    base = _profiles(report.base.runs, store)
    for compared in report.others:
        other = _profiles(compared.side.runs, store)
        if base and other:
            about = compared.side.release if len(report.others) > 1 else ""
            yield from flames(base, other, ("base", "other"), about=about)


def _profiles(
    runs: Sequence[ReportedRun], store: Store, regions: Collection[str] | None = None
) -> tuple[Profile, ...]:
    """Those of the first of the runs that has any, or of the same run made once more; of these
    regions, or all.
    """
    for one in runs:
        for run in (one.run, store.find_run(one.run.key)):
            if run is not None and PROFILES in run.attachments:
                return tuple(
                    one
                    for one in profiles_of(store, run)
                    if regions is None or one.region in regions
                )
    return ()
