# SPDX-License-Identifier: GPL-2.0-or-later
"""The main job: a base and other kernels, a workload, and what each other kernel changed."""

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from kdelta.counts.model import RunCounts
from kdelta.cpus.model import CPU
from kdelta.guests.image import stop_address
from kdelta.guests.job import Job, JobFile
from kdelta.guests.modules import modules_for, modules_if_there, with_dependencies
from kdelta.host.command import quiet
from kdelta.host.interrupt import interruptible
from kdelta.infer.cycles.placement_model import CodeChange
from kdelta.infer.effects.effects import Effects
from kdelta.infer.effects.packets import PhaseCost
from kdelta.kernels.build.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.spec.errors import KdeltaError, UserError
from kdelta.spec.run import CALLS, Mode
from kdelta.store.store import Store
from kdelta.studies.lab.judges import CountedKernel, Judge, OperationRuns, OtherStates
from kdelta.studies.lab.lab import Done, Lab
from kdelta.studies.lab.requests import (
    CompareRequest,
    LabRequest,
    Progress,
    lab_like,
    must_fit,
    must_replay_data,
)
from kdelta.studies.lab.same_code import Known, codes_of
from kdelta.studies.lab.work import (
    GuestPart,
    Work,
    carried_files,
    check_needs,
    in_mode,
    library_of,
    linked_in,
    work_of,
)
from kdelta.studies.tracing.comparable import comparable, guest_of
from kdelta.studies.tracing.cycles import Cycles, Traced, cycles_between, traced_runs
from kdelta.studies.tracing.phases import phase_costs
from kdelta.studies.tracing.placement import kept_digest, run_symbols, was_relinked
from kdelta.workloads.catalog import Workload, build_workload, find_workload
from kdelta.workloads.kernel_part import KERNEL_FLAGS_ENDING, build_kernel_part


class RunSide(msgspec.Struct, frozen=True):
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
    """The base against one other kernel; no effects when a side has no run that went well.

    cpu: what the machine looked like, None where it was nothing in particular. cycles: what is
    known of model cycles on it, where both sides have a run that went well. more: the runs that
    decided what the sides' own left to chance. phases: by side and region that is about packets,
    what each phase of the workload costs.
    """

    workload: str
    base: RunSide
    other: RunSide
    effects: Effects | None
    cpu: CPU | None = None
    cycles: Cycles | None = None
    more: tuple[OperationRuns, ...] = ()
    phases: dict[str, dict[str, tuple[PhaseCost, ...]]] = {}


async def run_compare(
    request: CompareRequest, store: Store, progress: Progress
) -> tuple[Comparison, ...]:
    """One comparison for each of the other kernels, in their order; of each CPU, in its."""
    if not request.others:
        raise UserError("nothing to compare with", "name a base kernel and at least one other")
    workload = find_workload(request.workload)
    for name in request.operations:
        workload.operation(name)
    _must_replay(request)
    cpus: Sequence[CPU | None] = request.cpus or (None,)
    machines = [(cpu, lab_like(request.lab, cpu)) for cpu in cpus]
    lab = Lab(request.lab, store, progress)
    wanted = [_side(lab, request.base), *_others(lab, request.others)]
    kernels = [side.kernel for side in wanted if side.kernel]
    _must_be_of_one_arch(kernels)
    for named, kernel in itertools.product(request.cpus, kernels):
        must_fit(named, kernel)
    for kernel in kernels:
        check_needs(workload, kernel)
    mode = request.lab.mode
    works = [workload_work(workload, request.operations, k, progress.say, mode) for k in kernels]
    found: list[Comparison] = []
    for cpu, lab_request in machines:
        if cpu is None:
            runs = await Lab(lab_request, store, progress).runs(kernels, works)
            results = [Traced(tuple(done)) for done in runs]
        else:
            results = await traced_runs(lab_request, store, progress, kernels, works, cpu=cpu)
        judge = path_judge(lab_request, store, progress, workload)
        states = other_states(lab_request, store, progress, workload) if request.states else None
        base, *others = _with(wanted, results)
        phases = [_phases(made, workload, store, cpu) for _, made in (base, *others)]
        for other, theirs in zip(others, phases[1:], strict=True):
            one = await _compared(request, cpu, (judge, states), (base, other), progress)
            one = _without_lost_paths(one, store)
            sides = {"base": phases[0], "other": theirs}
            found.append(msgspec.structs.replace(one, phases=sides))
    return tuple(found)


def _phases(
    traced: Traced, workload: Workload, store: Store, cpu: CPU | None
) -> dict[str, tuple[PhaseCost, ...]]:
    placed = traced.placed
    if cpu is None or placed is None or not workload.phases:
        return {}
    symbols = run_symbols(placed.kernel, store, placed.run)
    return phase_costs(placed, workload.phases, symbols, cpu)


def _with(wanted: Sequence[RunSide], results: Sequence[Traced]) -> list[tuple[RunSide, Traced]]:
    """The sides with their runs; one without a kernel has none."""
    left = iter(results)
    return [
        (msgspec.structs.replace(side, done=made.done), made)
        for side in wanted
        for made in [next(left) if side.kernel else Traced(())]
    ]


def path_judge(request: LabRequest, store: Store, progress: Progress, workload: Workload) -> Judge:
    """Who judges the paths of that workload's operations, as `compare` does."""
    return Judge(
        request,
        store,
        progress,
        [one.name for one in workload.operations],
        lambda kernel, operation: workload_work(workload, (operation,), kernel, mode=request.mode),
    )


def other_states(
    request: LabRequest, store: Store, progress: Progress, workload: Workload
) -> OtherStates | None:
    """Who looks whether verdicts hold from other states; None for a workload that is one run, whose
    operations make each other's state, and where one run of a kernel has no verdicts.
    """
    if not workload.own_starts or request.perturbations < 2:
        return None
    mode = request.mode
    return OtherStates(
        request,
        store,
        progress,
        lambda kernel, operations: workload_work(workload, operations, kernel, mode=mode),
    )


async def _compared(
    request: CompareRequest,
    cpu: CPU | None,
    judges: tuple[Judge, OtherStates | None],
    sides: tuple[tuple[RunSide, Traced], tuple[RunSide, Traced]],
    progress: Progress,
) -> Comparison:
    (base, ours), (other, theirs) = sides
    judge, states = judges
    effects: Effects | None = None
    more: tuple[OperationRuns, ...] = ()
    cycles = None
    if base.kernel and other.kernel and base.counts and other.counts:
        with interruptible():
            relinked = relinked_regions(base, other, ask=cpu is not None)
        judged = await judge.judge(
            CountedKernel(base.kernel, base.counts),
            CountedKernel(other.kernel, other.counts),
            relinked,
        )
        effects, more = judged.effects, judged.more
        if states:
            counts = (*base.counts, *other.counts)
            effects = await states.judge(effects, (base.kernel, other.kernel), counts)
    if cpu is not None:
        cycles = cycles_between(
            *_with_more(ours, theirs, more),
            cpu,
            layouts=request.layouts,
            margin=request.margin,
            data=request.lab.data_lines,
            progress=progress,
        )
    return Comparison(request.workload, base, other, effects, cpu, cycles, more)


def _without_lost_paths(one: Comparison, store: Store) -> Comparison:
    """The same without verdicts that a path decides which a kernel has lost in the guest."""
    if one.effects is None:
        return one
    guests = guest_of(one.base.done, store), guest_of(one.other.done, store)
    effects, cycles = comparable(one.effects, one.cycles, one.cpu, guests)
    return msgspec.structs.replace(one, effects=effects, cycles=cycles)


def _with_more(base: Traced, other: Traced, more: Sequence[OperationRuns]) -> tuple[Traced, Traced]:
    """With the runs of single operations: their spread counts for model cycles, too."""
    return (
        msgspec.structs.replace(base, done=(*base.done, *(d for m in more for d in m.base))),
        msgspec.structs.replace(other, done=(*other.done, *(d for m in more for d in m.other))),
    )


def relinked_regions(base: RunSide, other: RunSide, *, ask: bool = False) -> tuple[str, ...]:
    """The regions of which both kernels execute the same code, only relinked. It is looked into
    where one of them is a relink, or where that is asked for.
    """
    kernels = [side.kernel for side in (base, other) if side.kernel]
    known = [*_known(base), *_known(other)]
    if len(known) < 2 or not (ask or any(was_relinked(kernel) for kernel in kernels)):
        return ()
    return tuple(name for name, code in codes_of(*known).items() if code is CodeChange.RELINKED)


def _known(side: RunSide) -> list[Known]:
    """What is known of the code that a side executed, if it has a run that went well."""
    done = next((one for one in side.done if one.counts is not None), None)
    if side.kernel is None or done is None or done.counts is None:
        return []
    digest = kept_digest(side.kernel)
    program = done.run.workload_identity
    return [Known(side.kernel.identity, digest, done.counts, program, side.kernel.parameters)]


def _must_replay(request: CompareRequest) -> None:
    """That what is to be recorded of data can be made use of."""
    if request.lab.data_lines and not request.cpus:
        raise UserError(
            "accesses to data are recorded for the L2 of a CPU, and none is named",
            "name one with --cpu, or leave out --data",
        )
    for cpu in request.cpus if request.lab.data_lines else ():
        must_replay_data(cpu)


def _must_be_of_one_arch(kernels: Sequence[Kernel]) -> None:
    for first, other in itertools.pairwise(kernels):
        if first.arch != other.arch:
            raise UserError(
                f"{first.spec} is a kernel for {first.arch}, and {other.spec} one for "
                f"{other.arch}: their instructions cannot be compared",
                "compare kernels of one architecture",
            )


def _side(lab: Lab, spec: str) -> RunSide:
    """The kernel of a spec, or why it could not be built."""
    found = lab.kernel(spec)
    if isinstance(found, NoKernel):
        return RunSide(spec, None, failure=found.text)
    return RunSide(spec, found)


def _others(lab: Lab, specs: Sequence[str]) -> list[RunSide]:
    """The other kernels. One that cannot be obtained is reported, as long as there is another."""
    sides, errors = [], []
    for spec in specs:
        try:
            sides.append(_side(lab, spec))
        except KdeltaError as error:
            errors.append(error)
            sides.append(RunSide(spec, None, failure=f"{error.message} ({error.hint})"))
    if len(errors) == len(specs):
        raise errors[0]
    return sides


def workload_work(
    workload: Workload,
    operations: tuple[str, ...],
    kernel: Kernel,
    talk: Callable[[str], None] = quiet,
    mode: Mode = "user",
) -> Work:
    """A workload, or some of its operations, as a job for that kernel. What of it cannot be built
    for the kernel is left out, and the work's warnings say why. UserError where programs cannot run
    in that mode.
    """
    with interruptible():
        program = build_workload(workload, arch=kernel.arch, more=linked_in(mode, kernel))
        part = build_kernel_part(workload, kernel, talk)
        carried = carried_files(workload, program, kernel.arch, talk)
        if mode in CALLS and workload.image == "small":  # that in the image calls as ever
            carried.append(JobFile(program, workload.program, 0o755))
    binaries, files = {workload.file_name: program.read_bytes()}, []
    warnings = list(part.warnings)
    files += carried
    programs = [file for file in carried if file.mode & 0o111]
    binaries |= {Path(file.guest).name: file.host.read_bytes() for file in programs}
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
        argv=(workload.program, *workload.arguments, *workload.wanted(operations)),
        modules=modules_for(workload.modules, kernel),
        optional_modules=tuple(dict.fromkeys(optional)),
        seconds=workload.timeout_seconds,
        files=tuple(files),
    )
    job = in_mode(job, mode, kernel, talk)
    return work_of(
        workload.name,
        job,
        binaries | library_of(job),
        tuple(warnings),
        parts=_parts(workload, operations, job),
        memory_mib=workload.memory_mib,
        host_seconds=workload.host_seconds,
        asks_at=stop_address(program) if workload.own_starts else 0,
    )


LEVELS = 3
"""How many times a region that is not steady is run for longer."""
LATER = "--later"
"""Makes a program of own starts ask what it is to do when it is ready."""


def _parts(workload: Workload, operations: tuple[str, ...], job: Job) -> tuple[GuestPart, ...]:
    """Each operation as a job of its own, so that its figure is the same whatever else is run."""
    if not workload.own_starts:
        return ()
    usual = tuple(one.name for one in workload.operations if not one.on_request)
    program = (workload.program, *workload.arguments, LATER)
    levels = [(), *((workload.longer, str(level + 1)) for level in range(LEVELS))]
    return tuple(
        GuestPart(
            name,
            tuple(
                msgspec.structs.replace(job, argv=program, later=(*level, name))
                for level in (levels if workload.longer else levels[:1])
            ),
        )
        for name in operations or usual
    )
