# SPDX-License-Identifier: GPL-2.0-or-later
"""The main job: a base and other kernels, a workload, and what each other kernel changed."""

from collections.abc import Callable, Sequence

import msgspec

from kdelta.counts.model import RunCounts
from kdelta.guests.job import Job, JobFile
from kdelta.guests.modules import modules_for, modules_if_there, with_dependencies
from kdelta.host.command import quiet
from kdelta.host.interrupt import interruptible
from kdelta.infer.effects import Effects, compare
from kdelta.kernels.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.spec.errors import KdeltaError, UserError
from kdelta.store.store import Store
from kdelta.studies.lab import Done, Lab, Work, work_of
from kdelta.studies.requests import CompareRequest, Progress
from kdelta.workloads.catalog import Workload, build_workload, find_workload
from kdelta.workloads.kernel_part import KERNEL_FLAGS_ENDING, build_kernel_part


class Side(msgspec.Struct, frozen=True):
    """One kernel and its runs; `counts` has those that went well. No kernel: `failure` says why."""

    spec: str
    kernel: Kernel | None
    done: tuple[Done, ...] = ()
    failure: str = ""

    @property
    def counts(self) -> tuple[RunCounts, ...]:
        """What the runs counted that went well."""
        return tuple(done.counts for done in self.done if done.counts is not None)


class Comparison(msgspec.Struct, frozen=True):
    """The base against one other kernel; no effects when a side has no run that went well."""

    workload: str
    base: Side
    other: Side
    effects: Effects | None


async def run_compare(
    request: CompareRequest, store: Store, progress: Progress
) -> tuple[Comparison, ...]:
    """One comparison for each of the other kernels, in their order."""
    if not request.others:
        raise UserError("nothing to compare with", "name a base kernel and at least one other")
    workload = find_workload(request.workload)
    for name in request.operations:
        workload.operation(name)
    lab = Lab(request.lab, store, progress)
    wanted = [_side(lab, request.base), *_others(lab, request.others)]
    kernels = [side.kernel for side in wanted if side.kernel]
    works = [workload_work(workload, request.operations, k, progress.say) for k in kernels]
    results = iter(await lab.runs(kernels, works))
    base, *others = [
        msgspec.structs.replace(side, done=tuple(next(results))) if side.kernel else side
        for side in wanted
    ]
    return tuple(Comparison(workload.name, base, other, _effects(base, other)) for other in others)


def _side(lab: Lab, spec: str) -> Side:
    """The kernel of a spec, or why it could not be built."""
    found = lab.kernel(spec)
    if isinstance(found, NoKernel):
        return Side(spec, None, failure=found.text)
    return Side(spec, found)


def _others(lab: Lab, specs: Sequence[str]) -> list[Side]:
    """The other kernels. One that cannot be had is said, as long as there is another."""
    sides, errors = [], []
    for spec in specs:
        try:
            sides.append(_side(lab, spec))
        except KdeltaError as error:
            errors.append(error)
            sides.append(Side(spec, None, failure=f"{error.message} ({error.hint})"))
    if len(errors) == len(specs):
        raise errors[0]
    return sides


def _effects(base: Side, other: Side) -> Effects | None:
    return compare(base.counts, other.counts) if base.counts and other.counts else None


def workload_work(
    workload: Workload,
    operations: tuple[str, ...],
    kernel: Kernel,
    talk: Callable[[str], None] = quiet,
) -> Work:
    """A workload, or some of its operations, as a job for that kernel. What of it cannot be built
    for the kernel is left out, and the work's warnings say why.
    """
    with interruptible():
        program = build_workload(workload).read_bytes()
        part = build_kernel_part(workload, kernel, talk)
    binaries, files, warnings = {workload.name: program}, [], list(part.warnings)
    optional = modules_if_there(workload.modules_if_there, kernel)
    if part.program:
        binaries[part.program.name] = part.program.read_bytes()
        files.append(JobFile(part.program, workload.program + KERNEL_FLAGS_ENDING, 0o755))
    if part.module:
        try:
            optional += with_dependencies(part.module, kernel)
        except UserError as error:
            warnings.append(f"{part.module.stem} cannot be loaded: {error}")
    job = Job(
        argv=(workload.program, *workload.arguments, *operations),
        modules=modules_for(workload.modules, kernel),
        optional_modules=tuple(dict.fromkeys(optional)),
        seconds=workload.timeout_seconds,
        files=tuple(files),
    )
    return work_of(workload.name, job, binaries, tuple(warnings))
