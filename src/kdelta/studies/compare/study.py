# SPDX-License-Identifier: GPL-2.0-or-later
"""The main job: a base and other kernels, a workload, and what each other kernel changed."""

import contextlib
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence

import msgspec

from kdelta.cpus.model import CPU
from kdelta.infer.effects.effects import Effects
from kdelta.infer.effects.gains import PathGain
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.kernels.obtain import check_kernels
from kdelta.lab.budget import Budget, cost_of_runs
from kdelta.lab.cpus import lab_like, must_fit, must_replay_data
from kdelta.lab.found import in_rounds, with_found_files
from kdelta.lab.lab import Lab, RunResult
from kdelta.lab.recorded import recorded_runs
from kdelta.lab.steps import expect_kernels, expect_runs, refused_of
from kdelta.lab.work import Work
from kdelta.measures.model import (
    Judgement,
    Measure,
    RunPair,
    RunSide,
    measured,
    recording,
)
from kdelta.measures.path.judges import JudgedEffects, OperationRuns
from kdelta.measures.path.measure import Path, without_open_paths
from kdelta.measures.registry import measures_of
from kdelta.spec.errors import KdeltaError, UserError
from kdelta.spec.kernel import parameters_of, parse_kernel_spec
from kdelta.studies.compare.request import CompareRequest


class Comparison(msgspec.Struct, frozen=True):
    """The base against one other kernel; no effects when a side has no run that went well.

    cpu: what the machine looked like, None where it was nothing in particular. judged: what each
    measure besides the path found, where both sides have a run that went well. more: the runs that
    decided what the sides' own left to chance. gains: what paths of the CPU, or of the default one,
    could add to operations, which QEMU cannot offer. work: what was run; None is all of the
    workload.
    """

    workload: str
    base: RunSide
    other: RunSide
    effects: Effects | None
    cpu: CPU | None = None
    judged: tuple[Judgement, ...] = ()
    more: tuple[OperationRuns, ...] = ()
    work: Work | None = None
    gains: tuple[PathGain, ...] = ()


class SameKernelError(UserError):
    """Two kernels that are one: what was asked for of either changes nothing."""


Show = Callable[[Comparison], None]
"""A function that takes a comparison before all its runs are made."""


@in_rounds
async def run_compare(
    request: CompareRequest, lab: Lab, show: Show = lambda _: None
) -> tuple[Comparison, ...]:
    """Compare the base with each other kernel on each CPU, in the order given."""
    progress = lab.progress
    if not request.others:
        raise UserError("nothing to compare with", "name a base kernel and at least one other")
    request.timed.check()
    work = Work(request.workload, request.operations, request.program)
    work.check((request.base, *request.others), request.lab.machine)
    _must_replay(request)
    check_kernels((request.base, *request.others), progress.log)
    cpus: Sequence[CPU | None] = request.cpus or (None,)
    asked = [
        measures_of(request, [work], cpu if request.cycles else None, timed=not at)
        for at, cpu in enumerate(cpus)
    ]
    _expect(request, asked, lab)
    machines = [(cpu, lab.with_request(lab_like(request.lab, cpu))) for cpu in cpus]
    wanted = await _sides(work, request, machines[0][1])
    kernels = [side.kernel for side in wanted if side.kernel]
    _must_differ(wanted)
    _must_be_of_one_arch(kernels)
    for named, kernel in itertools.product(request.cpus, kernels):
        must_fit(named, kernel)
    for measure in itertools.chain(*asked):
        measure.check(machines[0][1], kernels)
    work = await with_found_files(work, kernels, machines[0][1])
    works = work.plans(kernels, request.lab, progress.log)
    found, budget = list[Comparison](), Budget(request.budget_seconds)
    for (cpu, machine), measures in zip(machines, asked, strict=True):
        settled = await machine.settled(kernels, works)
        recorded = settled.with_request(recording(settled.request, measures))
        if recorded.request.trace:
            runs = await recorded_runs(kernels, works, recorded)
        else:
            runs = await recorded.runs(kernels, works, parts=True)
        base, *others = _with(wanted, runs)
        for side in (base, *others):
            budget.spend(cost_of_runs(side.counts))
        path = _path(request, work, settled, cpu, budget)
        for other in others:
            begun = Comparison(work.title, base, other, None, cpu, work=work)
            found.append(await _compared(begun, path, measures, settled, show))
    if budget.refused.starts:
        progress.log(
            f"the budget ended: runs that were left out take {budget.refused.seconds} s more"
        )
    return tuple(found)


def _path(request: CompareRequest, work: Work, lab: Lab, cpu: CPU | None, budget: Budget) -> Path:
    margin, states = request.judged_margin, request.states
    return Path(work, lab, cpu=cpu, margin=margin, budget=budget, states=states)


def _expect(request: CompareRequest, machines: Sequence[Sequence[Measure]], lab: Lab) -> None:
    """Report what will be obtained, run and measured, as far as it is known before."""
    specs = (request.base, *request.others)
    expect_kernels(lab.progress, specs)
    expect_runs(lab.progress, request.lab, len(specs), len(machines))
    for measure in itertools.chain(*machines):
        measure.expect(lab.progress, len(request.others))


def _with(wanted: Sequence[RunSide], runs: Sequence[Sequence[RunResult]]) -> list[RunSide]:
    """Return the sides with their runs; one without a kernel has none."""
    left = iter(runs)
    return [
        msgspec.structs.replace(side, done=tuple(next(left))) if side.kernel else side
        for side in wanted
    ]


async def _compared(
    one: Comparison, path: Path, measures: Sequence[Measure], lab: Lab, show: Show
) -> Comparison:
    """Return a comparison, judged by the path and then by all measures."""
    base, other, cpu = one.base, one.other, one.cpu
    if not (base.kernel and other.kernel and base.counts and other.counts):
        return one

    def so_far(effects: Effects) -> None:
        show(msgspec.structs.replace(one, effects=effects))

    first, *judged = await measured([path, *measures], lab, RunPair(base, other, show=so_far))
    assert first is not None
    found = first.detail
    assert isinstance(found, JudgedEffects)
    effects, gains = without_open_paths(found.effects, base, other, cpu, lab.store)
    return msgspec.structs.replace(
        one,
        effects=effects,
        judged=tuple(
            measure.doubted(judgement or Judgement(measure.found()), gains)
            for measure, judgement in zip(measures, judged, strict=True)
        ),
        more=found.more,
        gains=gains,
    )


def _must_replay(request: CompareRequest) -> None:
    """That what is to be recorded of data can be made use of."""
    if request.lab.data_lines and not (request.cycles and request.cpus):
        raise UserError(
            "accesses to data are recorded for the L2 of a CPU, and none is named",
            "name one with --cycles, or leave out --data",
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
