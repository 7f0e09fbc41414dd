# SPDX-License-Identifier: GPL-2.0-or-later
"""The main job: a base and other kernels, a workload, and what each other kernel changed."""

import contextlib
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import msgspec

from kdelta.counts.model import RunCounts
from kdelta.cpus.model import CPU
from kdelta.host.interrupt import interruptible
from kdelta.infer.cycles.placement_model import CodeChange
from kdelta.infer.effects.effects import MARGIN, Effects
from kdelta.infer.effects.gains import PathGain
from kdelta.infer.effects.packets import PhaseCost
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.kernels.obtain import check_kernels
from kdelta.lab.budget import Budget, cost_of_runs
from kdelta.lab.cpus import lab_like, must_fit, must_replay_data
from kdelta.lab.found import with_files
from kdelta.lab.judges import (
    CountedKernel,
    Judge,
    OperationRuns,
    OtherStates,
    SharedCode,
)
from kdelta.lab.lab import Lab, RunResult
from kdelta.lab.progress import Progress
from kdelta.lab.same_code import KernelCode, codes_of
from kdelta.lab.steps import expect_kernels, expect_runs, refused_of
from kdelta.lab.work import Work
from kdelta.measures.cycles.comparable import comparable, guest_of
from kdelta.measures.cycles.effects import Cycles, Traced, cycles_between, traced_runs
from kdelta.measures.cycles.gains import gained
from kdelta.measures.cycles.phases import phase_costs
from kdelta.measures.cycles.placement import kept_digest, run_symbols, was_relinked
from kdelta.spec.errors import KdeltaError, UserError
from kdelta.spec.kernel import parameters_of, parse_kernel_spec
from kdelta.store.store import Store
from kdelta.studies.compare.request import CompareRequest


class RunSide(msgspec.Struct, frozen=True):
    """One kernel and its runs; `counts` has those that went well. No kernel: `failure` says why."""

    spec: str
    kernel: Kernel | None
    done: tuple[RunResult, ...] = ()
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
    what each phase of the workload costs. gains: what paths of the CPU, or of the default one,
    could add to operations, which QEMU cannot offer. work: what was run; None is all of the
    workload.
    """

    workload: str
    base: RunSide
    other: RunSide
    effects: Effects | None
    cpu: CPU | None = None
    cycles: Cycles | None = None
    more: tuple[OperationRuns, ...] = ()
    phases: dict[str, dict[str, tuple[PhaseCost, ...]]] = {}
    work: Work | None = None
    gains: tuple[PathGain, ...] = ()


class SameKernelError(UserError):
    """Two kernels that are one: what was asked for of either changes nothing."""


Show = Callable[[Comparison], None]
"""A function that takes a comparison before all its runs are made."""


async def run_compare(
    request: CompareRequest, lab: Lab, show: Show = lambda _: None
) -> tuple[Comparison, ...]:
    """One comparison for each of the other kernels, in their order; of each CPU, in its."""
    store, progress = lab.store, lab.progress
    if not request.others:
        raise UserError("nothing to compare with", "name a base kernel and at least one other")
    work = Work(request.workload, request.operations, request.program)
    work.check((request.base, *request.others))
    _must_replay(request)
    check_kernels((request.base, *request.others), progress.log)
    cpus: Sequence[CPU | None] = request.cpus or (None,)
    _expect(request, len(cpus), progress)
    machines = [(cpu, lab.asked(lab_like(request.lab, cpu))) for cpu in cpus]
    wanted = await _sides(work, request, machines[0][1])
    kernels = [side.kernel for side in wanted if side.kernel]
    _must_differ(wanted)
    _must_be_of_one_arch(kernels)
    for named, kernel in itertools.product(request.cpus, kernels):
        must_fit(named, kernel)
    work = await with_files(work, kernels, machines[0][1])
    works = work.plans(kernels, request.lab, progress.log)
    found: list[Comparison] = []
    budget = Budget(request.budget_seconds)
    for cpu, machine in machines:
        settled = await machine.settled(kernels, works)
        if cpu is None:
            runs = await settled.runs(kernels, works, parts=True)
            results = [Traced(tuple(done)) for done in runs]
        else:
            results = await traced_runs(kernels, works, settled)
        judge = path_judge(work, settled, margin=request.path_margin, budget=budget)
        states = other_states(work, settled, budget)
        base, *others = _with(wanted, results)
        for side, _ in (base, *others):
            budget.spend(cost_of_runs(side.counts))
        phases = [_phases(made, work, store, cpu) for _, made in (base, *others)]
        for other, theirs in zip(others, phases[1:], strict=True):
            judges = _Judges(judge, states if request.states else None, work, show, progress)
            one = await _compared(request, cpu, judges, (base, other))
            one = _without_open_paths(one, store)
            sides = {"base": phases[0], "other": theirs}
            found.append(msgspec.structs.replace(one, workload=work.title, work=work, phases=sides))
    if budget.refused.starts:
        progress.log(
            f"the budget ended: runs that were left out take {budget.refused.seconds} s more"
        )
    return tuple(found)


def _expect(request: CompareRequest, machines: int, progress: Progress) -> None:
    """Reports what will be obtained, run and replayed, as far as it is known before."""
    specs = (request.base, *request.others)
    expect_kernels(progress, specs)
    expect_runs(progress, request.lab, len(specs), machines)
    progress.expect("replay", len(request.others) * len(request.cpus))


def _phases(
    traced: Traced, work: Work, store: Store, cpu: CPU | None
) -> dict[str, tuple[PhaseCost, ...]]:
    placed = traced.placed
    if cpu is None or placed is None or not work.phases:
        return {}
    symbols = run_symbols(placed.kernel, store, placed.run)
    return phase_costs(placed, work.phases, symbols, cpu)


def _with(wanted: Sequence[RunSide], results: Sequence[Traced]) -> list[tuple[RunSide, Traced]]:
    """The sides with their runs; one without a kernel has none."""
    left = iter(results)
    return [
        (msgspec.structs.replace(side, done=made.done), made)
        for side in wanted
        for made in [next(left) if side.kernel else Traced(())]
    ]


def path_judge(
    work: Work,
    lab: Lab,
    *,
    margin: Fraction = MARGIN,
    budget: Budget | None = None,
) -> Judge:
    """Who judges the paths of that work's operations, as `compare` does."""
    return Judge(
        lab,
        work.has,
        lambda kernel, operations: work.only(operations).plan(kernel, lab.request),
        own_starts=work.own_starts,
        margin=margin,
        budget=budget,
    )


def other_states(work: Work, lab: Lab, budget: Budget | None = None) -> OtherStates | None:
    """Who looks whether verdicts hold from other states; None for a workload that is one run, whose
    operations make each other's state, and where one run of a kernel has no verdicts.
    """
    if not work.own_starts or lab.request.perturbations < 2:
        return None
    asked = lab.request
    return OtherStates(
        lab,
        lambda kernel, operations: work.only(operations).plan(kernel, asked).without_windows(),
        budget,
    )


class _Judges(msgspec.Struct, frozen=True):
    """What judges pairs of kernels that did the same work, and what takes their reports."""

    paths: Judge
    states: OtherStates | None
    work: Work
    show: Show
    progress: Progress


async def _compared(
    request: CompareRequest,
    cpu: CPU | None,
    judges: _Judges,
    sides: tuple[tuple[RunSide, Traced], tuple[RunSide, Traced]],
) -> Comparison:
    (base, ours), (other, theirs) = sides

    def show(effects: Effects) -> None:
        work = judges.work
        judges.show(Comparison(work.title, base, other, effects, cpu, work=work))

    effects: Effects | None = None
    more: tuple[OperationRuns, ...] = ()
    cycles = None
    if base.kernel and other.kernel and base.counts and other.counts:
        with interruptible():
            code = shared_code(base, other, ask=cpu is not None)
        judged = await judges.paths.judge(
            CountedKernel(base.kernel, base.counts),
            CountedKernel(other.kernel, other.counts),
            code,
            show,
        )
        effects, more = judged.effects, judged.more
        if judges.states:
            show(effects)
            counts = (*base.counts, *other.counts)
            effects = await judges.states.judge(effects, (base.kernel, other.kernel), counts)
    if cpu is not None:
        cycles = cycles_between(
            *_with_more(ours, theirs, more),
            cpu,
            layouts=request.layouts,
            margin=request.margin,
            data=request.lab.data_lines,
            progress=judges.progress,
        )
    return Comparison(request.workload, base, other, effects, cpu, cycles, more)


def _without_open_paths(one: Comparison, store: Store) -> Comparison:
    """The same without verdicts that a path decides which a kernel has lost in the guest, and firm
    ones that a path could turn round which QEMU cannot offer.
    """
    if one.effects is None:
        return one
    guests = guest_of(one.base.done, store), guest_of(one.other.done, store)
    effects, cycles = comparable(one.effects, one.cycles, one.cpu, guests)
    sides = one.base.done, one.other.done
    effects, cycles, gains = gained(effects, cycles, one.cpu, sides, store)
    return msgspec.structs.replace(one, effects=effects, cycles=cycles, gains=gains)


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


def shared_code(base: RunSide, other: RunSide, *, ask: bool = False) -> SharedCode:
    """Return what both kernels share; ask: see `relinked_regions`."""
    return SharedCode(
        relinked_regions(base, other, ask=ask), functools.partial(same_regions, base, other)
    )


def same_regions(base: RunSide, other: RunSide) -> tuple[str, ...]:
    """Return the regions of which both kernels execute the same code: all where they have the same
    image; else those that digests of their objects say this of.
    """
    images = [side.kernel.image if side.kernel else side.spec for side in (base, other)]
    if images[0] == images[1]:
        return tuple(dict.fromkeys(one.name for runs in base.counts for one in runs.regions))
    known = [*_known(base), *_known(other)]
    if len(known) < 2:
        return ()
    same = (CodeChange.SAME, CodeChange.RELINKED)
    return tuple(name for name, code in codes_of(*known).items() if code in same)


def _known(side: RunSide) -> list[KernelCode]:
    """What is known of the code that a side executed, if it has a run that went well."""
    done = next((one for one in side.done if one.counts is not None), None)
    if side.kernel is None or done is None or done.counts is None:
        return []
    digest = kept_digest(side.kernel)
    program = done.run.workload_identity
    return [KernelCode(side.kernel.identity, digest, done.counts, program, side.kernel.parameters)]


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


def _must_differ(sides: Sequence[RunSide]) -> None:
    """SameKernelError where another kernel than the base was asked for, and it is the base. One
    that is named twice is compared with itself on purpose.
    """
    first, *others = sides
    for side in others:
        base, other = first.kernel, side.kernel
        if base and other and base.identity == other.identity and first.spec != side.spec:
            raise SameKernelError(
                f"nothing to compare: {side.spec} is the same kernel as {first.spec}: "
                "what was asked for changes nothing",
                f"kdelta kernels {other.built[:12]} shows its config" if other.built else "",
            )


def _side(lab: Lab, spec: str) -> RunSide:
    """The kernel of a spec, or why it could not be built."""
    found = lab.kernel(spec)
    if isinstance(found, NoKernel):
        return RunSide(spec, None, failure=found.text)
    return RunSide(spec, found)


async def _sides(work: Work, request: CompareRequest, lab: Lab) -> list[RunSide]:
    """The base and the others. One that cannot be obtained is reported, as long as there is
    another. Those that may be refused come first: then nothing was done in vain.
    """
    specs = (request.base, *request.others)
    refused = refused_of(specs, lab.progress)
    with_parameters = [spec for spec in specs if _has_parameters(spec) and spec not in refused]
    found: dict[str, RunSide] = {}
    errors: dict[str, KdeltaError] = {}
    for wanted in (refused, with_parameters, specs):
        for spec in dict.fromkeys(wanted):
            if spec in found:
                continue
            try:
                found[spec] = _side(lab, spec) if _is_of_use(found, request) else _not_needed(spec)
            except KdeltaError as error:
                if spec == request.base:
                    raise
                errors[spec] = error
                found[spec] = RunSide(spec, None, failure=f"{error.message} ({error.hint})")
        kernels = [side.kernel for side in found.values() if side.kernel]
        if wanted is with_parameters:
            plan = functools.partial(work.plan, asked=request.lab)
            # What files a program needs is not known yet.
            await lab.take_parameters(kernels, _no_plan if work.program else plan)
    if all(spec in errors for spec in request.others):
        raise errors[request.others[0]]
    return [found[spec] for spec in specs]


def _is_of_use(found: Mapping[str, RunSide], request: CompareRequest) -> bool:
    """Whether there still may be a base, and another kernel to compare with it."""
    failed = {spec for spec, side in found.items() if side.failure}
    return request.base not in failed and not failed.issuperset(request.others)


def _not_needed(spec: str) -> RunSide:
    return RunSide(spec, None, failure="not built: there is no kernel to compare it with")


def _has_parameters(spec: str) -> bool:
    with contextlib.suppress(UserError):  # which is raised when it is obtained
        return bool(parameters_of(parse_kernel_spec(spec)))
    return False


def _no_plan(_kernel: Kernel) -> None:
    return None
