# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta log`: the store's runs of a workload, in series; nothing is run for it."""

import datetime
import difflib
import functools
import itertools
from collections import Counter
from collections.abc import Sequence

import msgspec

from kdelta.counts.model import RunCounts, merged_regions
from kdelta.cpus.model import CPU
from kdelta.host.interrupt import interruptible
from kdelta.infer.effects.effects import FIRM, Effects, OperationEffect
from kdelta.infer.effects.estimate import Estimate, Scale
from kdelta.infer.effects.history import overall_change, step_effects
from kdelta.lab.lab import Lab, RunResult
from kdelta.lab.plan import same_program
from kdelta.lab.reports import controllers, facts_of_machine, reported_cpu
from kdelta.lab.run_facts import mode_of
from kdelta.measures.model import Judgement, Measure
from kdelta.measures.path.comparable import comparable, guest_of
from kdelta.measures.path.judges import MOST_RUNS, STATES, in_other_state
from kdelta.measures.path.shared import (
    are_alike,
    differing_functions,
    regions_without_change,
    relinked_regions,
)
from kdelta.measures.registry import measures_of
from kdelta.report.groups import groups_text
from kdelta.spec.errors import UserError
from kdelta.spec.run import Mode, RunStatus
from kdelta.spec.versions import compare_versions
from kdelta.store.model import Run
from kdelta.store.store import Store
from kdelta.studies.log.lineage import (
    Lineage,
    RunGroup,
    distinct_names,
    groups_of,
    lineages,
    ordered_by,
    worth_showing,
)
from kdelta.studies.log.model import (
    HistoryKernel,
    HistoryPoint,
    HistoryReport,
    HistorySeries,
    HistoryTotal,
    HistoryTrack,
    PathStep,
)
from kdelta.studies.log.request import HistoryRequest
from kdelta.studies.log.steps import CachedKernels, measured_steps, steps_of
from kdelta.workloads.catalog import find_workload, list_workloads

MOST_SERIES = 4
"""So many are shown, those with most kernels."""

_OWN_FILES = (
    "each kernel ran the workload with files of its own (modules that are built for it, or another "
    "form of the workload): a step may be theirs"
)


class _Kernel(msgspec.Struct, frozen=True, eq=False):
    """A kernel of a series, and its runs there."""

    lineage: Lineage
    name: str
    done: tuple[RunResult, ...]

    @property
    def counts(self) -> tuple[RunCounts, ...]:
        return tuple(one.counts for one in self.done if one.counts is not None)


def run_history(request: HistoryRequest, lab: Lab) -> HistoryReport:
    """How a workload's figures moved. UserError where the store has nothing, or one kernel only,
    to tell of; LabError for a damaged store.
    """
    store = lab.store
    known = _named(request, _runs(request, store))
    with interruptible():
        groups = groups_of(known, lambda run: frozenset(merged_regions(store.counts(run))))
    shown = worth_showing(groups, request.operations)
    _must_have(request, groups, shown)
    study = _HistoryStudy(request, lab, groups)
    several = [group for group in shown if len(group.kernels) > 1]
    lone = dict.fromkeys(run.kernel_spec for one in shown if one not in several for run in one.runs)
    if not several:
        raise UserError(
            f"there is nothing to hold {next(iter(lone))} against: no other kernel ran "
            f"{request.workload} on the same machine",
            f"run another one: kdelta compare A B -w {request.workload}; kdelta runs lists them",
        )
    series = [one for group in several[:MOST_SERIES] for one in study.series(group)]
    left_out = [f"alone on its machine, or with what it ran: {spec}" for spec in lone]
    if len(several) > MOST_SERIES:
        left_out.append(
            f"{len(several) - MOST_SERIES} more series, of {len(several[MOST_SERIES].kernels)} "
            "kernels at most, on other machines or with another form of the workload: a KERNEL or "
            "--cpu names them"
        )
    return HistoryReport(request.workload, request.operations, tuple(series), tuple(left_out))


def _runs(request: HistoryRequest, store: Store) -> list[Run]:
    """The runs of the workload that went well, on the machines that were asked for."""
    every = [run for run in store.runs() if run.status is RunStatus.OK and run.counts_blob]
    runs = [run for run in every if run.workload == request.workload]
    for word in request.kernels:
        if word in list_workloads():
            raise UserError(
                f"no kernel in the store is called {word}, which is a workload",
                f"write kdelta log -w {word}",
            )
    if not runs:
        find_workload(request.workload)  # UserError, with what there is, for one that is none
        raise UserError(
            f"the workload {request.workload} was not run yet",
            f"kdelta compare A B -w {request.workload} does, and keeps it",
        )
    if request.mode:
        runs = _in_mode(runs, request.workload, request.mode)
    if not request.cpus:
        return runs
    found = [run for run in runs if any(_is_like(run, cpu) for cpu in request.cpus)]
    if not found:
        names = ", ".join(cpu.name for cpu in request.cpus)
        raise UserError(
            f"{request.workload} was not run on a machine that looks like {names}",
            f"kdelta compare A B -w {request.workload} --cpu {request.cpus[0].name} does",
        )
    return found


def _in_mode(runs: Sequence[Run], workload: str, mode: Mode) -> list[Run]:
    found = [run for run in runs if mode_of(run) == mode]
    if not found:
        raise UserError(
            f"{workload} was not run in the mode {mode}",
            f"kdelta compare A B -w {workload} --mode {mode} does",
        )
    return found


def _is_like(run: Run, cpu: CPU) -> bool:
    """Whether a run's machine was made to look like that CPU."""
    append = str(run.machine.get("append", ""))
    forced = str(run.machine.get("force", "")).split()
    is_it = run.machine.get("cpu") == cpu.qemu.cpu and forced == list(cpu.qemu.force)
    return is_it and append.startswith(cpu.qemu.append)


def _named(request: HistoryRequest, runs: Sequence[Run]) -> list[Run]:
    """The runs of the kernels that were asked for, and since when."""
    found = list(runs)
    if request.kernels:
        for word in request.kernels:
            if not any(_is_called(run, word) for run in runs):
                raise _unknown_kernel(word, runs)
        found = [run for run in runs if any(_is_called(run, word) for word in request.kernels)]
    if request.since:
        found = _since(request.since, found)
    return found


def _is_called(run: Run, word: str) -> bool:
    begins = len(word) >= 6 and run.kernel_identity.startswith(word)
    return word in run.kernel_spec or word == run.kernel_release or begins


def _unknown_kernel(word: str, runs: Sequence[Run]) -> UserError:
    names = dict.fromkeys(name for run in runs for name in (run.kernel_release, run.kernel_spec))
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.4)
    meant = f"did you mean {near[0]}? " if near else ""
    return UserError(
        f"no kernel in the store is called {word}",
        f"{meant}a part of a spec, a release or the beginning of an identity names one; kdelta "
        "runs lists them",
    )


def _since(text: str, runs: Sequence[Run]) -> list[Run]:
    """The runs of kernels of that date or later, or of that version or later."""
    kernels = lineages(runs)
    try:
        day = datetime.datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=datetime.UTC)
    except ValueError:
        if not text[:1].isdigit():
            raise UserError(
                f"neither a date nor a version: {text}", "for example --since 2026-01-31 or 6.12"
            ) from None
        kept = {one.identity for one in kernels if compare_versions(one.version, text) >= 0}
    else:
        kept = {one.identity for one in kernels if one.date >= day.timestamp()}
    found = [run for run in runs if run.kernel_identity in kept]
    if not found:
        raise UserError(f"there is no kernel since {text}", "leave out --since to see all")
    return found


def _must_have(
    request: HistoryRequest, groups: Sequence[RunGroup], shown: Sequence[RunGroup]
) -> None:
    if shown:
        return
    known = dict.fromkeys(name for group in groups for name in sorted(group.regions))
    missing = [name for name in request.operations if name not in known] or request.operations
    near = difflib.get_close_matches(missing[0], known, n=1)
    raise UserError(
        f"no run of {request.workload} has the operation {missing[0]}",
        f"did you mean {near[0]}?" if near else f"there is: {', '.join(known)}",
    )


class _HistoryStudy:
    """What all series are made with."""

    def __init__(self, request: HistoryRequest, lab: Lab, groups: Sequence[RunGroup]) -> None:
        self._request = request
        self._lab = lab
        self._groups = groups
        self._cache = CachedKernels()
        described = list_workloads().get(request.workload.partition(":")[0])  # none of a program
        self._own_starts = described is None or described.own_starts

    def series(self, group: RunGroup) -> list[HistorySeries]:
        """The series of a group: one, or one for each CPU that its machine looks like."""
        judged = self._request.cpus if self._request.cycles else ()
        like = [cpu for cpu in judged if _is_like(group.runs[0], cpu)]
        kernels, notes = self._kernels(group)
        step = f"judge the steps between {len(kernels)} kernels"
        self._lab.progress.begin(step)
        effects = []
        for base, other in itertools.pairwise(kernels):
            self._lab.progress.doing(step, other.name)
            effects.append(self._step(base, other, group))
        self._lab.progress.end(step, "done")
        cpus: list[CPU | None] = [*like] or [None]
        return [self._series(group, kernels, effects, cpu, notes) for cpu in cpus]

    def _series(
        self,
        group: RunGroup,
        kernels: Sequence[_Kernel],
        effects: Sequence[Effects],
        cpu: CPU | None,
        notes: Sequence[str],
    ) -> HistorySeries:
        names = self._names(kernels)
        measures = measures_of(self._request, (), cpu)
        judged, more = self._measured(measures, kernels, effects, tuple(names))
        guests = [guest_of(one.done, self._lab.store) for one in kernels]
        effects = [
            comparable(one, cpu, pair)
            for one, pair in zip(effects, itertools.pairwise(guests), strict=True)
        ]
        return HistorySeries(
            machine=facts_of_machine([kernels[-1].done[0]], self._lab.store),
            kernels=tuple(map(_reported, kernels)),
            tracks=tuple(_track(name, kernels, effects, judged) for name in names),
            totals=tuple(_totals(effects, names)),
            ordered=ordered_by([one.lineage for one in kernels]),
            cpu=reported_cpu(cpu) if cpu else None,
            notes=(*notes, *([_OWN_FILES] if group.own_files else []), *more),
            groups=groups_text(
                [
                    (f"kernel {number}", controllers(one.done, self._lab.store))
                    for number, one in enumerate(kernels, start=1)
                ]
            ),
        )

    def _measured(
        self,
        measures: Sequence[Measure],
        kernels: Sequence[_Kernel],
        effects: Sequence[Effects],
        regions: tuple[str, ...],
    ) -> tuple[list[list[Judgement | None]], list[str]]:
        """Return by measure the steps between kernels, and notes."""
        sides = [(one.lineage, self._cache.side(one.lineage, one.done)) for one in kernels]
        every = [measured_steps(one, sides, effects, regions, self._lab) for one in measures]
        return [judged for judged, _ in every], [note for _, notes in every for note in notes]

    def _names(self, kernels: Sequence[_Kernel]) -> list[str]:
        """The operations that are asked for and that any kernel has, in the order of the first."""
        found = dict.fromkeys(
            name for kernel in kernels for run in kernel.counts for name in merged_regions(run)
        )
        return [one for one in found if one in (self._request.operations or found)]

    def _kernels(self, group: RunGroup) -> tuple[list[_Kernel], list[str]]:
        """The last kernels of a group with their runs, in order, and what is not shown."""
        found = lineages(group.runs)
        shown = found[-self._request.limit :]
        left = len(found) - len(shown)
        notes = [f"{left} earlier kernels are left out (-n)"] if left else []
        step = f"read the runs of {len(shown)} kernels"
        self._lab.progress.begin(step)
        with interruptible():
            kernels = [
                _Kernel(one, name, self._done(group, one.identity, self._request.perturbations))
                for one, name in zip(shown, distinct_names(shown), strict=True)
            ]
        self._lab.progress.end(step, f"{sum(len(one.done) for one in kernels)} runs")
        return kernels, notes

    def _done(self, group: RunGroup, identity: str, count: int) -> tuple[RunResult, ...]:
        """A kernel's runs in a group, the latest of each of a comparison's perturbations."""
        mine = [
            run
            for run in group.runs
            if run.kernel_identity == identity and run.perturbation < count
        ]
        runs = {run.perturbation: run for run in sorted(mine, key=lambda one: one.started)}
        kept = [runs[number] for number in sorted(runs)]
        return tuple(RunResult(run, self._lab.store.counts(run), stored=True) for run in kept)

    def _step(self, base: _Kernel, other: _Kernel, group: RunGroup) -> Effects:
        def alone(operation: str) -> tuple[Sequence[RunCounts], Sequence[RunCounts]]:
            sides = [
                self._runs_with(group, one.lineage.identity, operation) for one in (base, other)
            ]
            both = min(map(len, sides))
            mine, theirs = ([one.counts for one in done[:both] if one.counts] for done in sides)
            return mine, theirs

        with interruptible():
            sides = [self._cache.side(one.lineage, one.done) for one in (base, other)]
            effects = step_effects(
                base.counts,
                other.counts,
                alone,
                relinked_regions(*sides),
                differing=functools.partial(differing_functions, *sides),
                unchanged=functools.partial(regions_without_change, *sides),
                alike=are_alike(sides[0].kernel, sides[1].kernel),
            )
            return self._in_other_states(effects, base, other, group)

    def _runs_with(self, group: RunGroup, identity: str, operation: str) -> list[RunResult]:
        """Return a kernel's runs of an operation on a group's machine, up to the first perturbation
        that is missing: those of the group's program. Where operations make each other's state, it
        returns the runs of the operation alone.
        """
        found: dict[int, RunResult] = {}
        most = max(MOST_RUNS, self._request.perturbations)
        for one in (group, *self._groups):
            of_program = same_program(
                one.runs[0].workload_identity, group.runs[0].workload_identity
            )
            usable = of_program if self._own_starts else one.regions == {operation}
            if usable and one.machine == group.machine and operation in one.regions:
                for done in self._done(one, identity, most):
                    found.setdefault(done.run.perturbation, done)
        return [found[at] for at in itertools.takewhile(found.__contains__, itertools.count())]

    def _in_other_states(
        self, effects: Effects, base: _Kernel, other: _Kernel, group: RunGroup
    ) -> Effects:
        """The effects, with what a comparison found from other states, where its runs are there."""
        identities = base.lineage.identity, other.lineage.identity
        firm = {one.name for one in effects.operations if one.verdict.word in FIRM}
        for state in STATES:
            names = set(firm)
            machine = group.machine | {name: int(value) for name, value in state.change.items()}
            for found in self._groups:
                if found.machine == machine and found.kernels >= {*identities}:
                    sides = [self._done(found, identity, 1) for identity in identities]
                    wanted = names & found.regions
                    effects = in_other_state(effects, wanted, (sides[0], sides[1]), state)
                    names -= wanted
        return effects


def _reported(kernel: _Kernel) -> HistoryKernel:
    one = kernel.lineage
    return HistoryKernel(
        name=kernel.name,
        spec=one.spec,
        release=one.release,
        identity=one.identity,
        version=one.version,
        date=one.date,
        dated=one.dated,
        runs=tuple(done.run.id for done in kernel.done),
        subject=one.subject,
    )


def _track(
    name: str,
    kernels: Sequence[_Kernel],
    effects: Sequence[Effects],
    judged: Sequence[Sequence[Judgement | None]],
) -> HistoryTrack:
    steps: list[PathStep | None] = [None, *(_step_of(name, one) for one in effects)]
    points = []
    for at, (kernel, step) in enumerate(zip(kernels, steps, strict=True)):
        # The figures of a step are the comparison's, which may be of more runs.
        compared = _operation(name, effects[max(0, at - 1)]) if effects else None
        if compared and compared.costs:
            insns = compared.costs.insns
            figure: Estimate | None = insns.other if at else insns.base
        else:
            figure = _figure(name, kernel)
        here = [found for of in judged if at and (found := of[at - 1])]
        points.append(HistoryPoint(figure, step, steps_of(name, here)))
    return HistoryTrack(name, tuple(points))


def _figure(name: str, kernel: _Kernel) -> Estimate | None:
    """An operation's figure on a kernel by its own runs; None if it has none."""
    regions = [merged_regions(run)[name] for run in kernel.counts if name in merged_regions(run)]
    if not regions:
        return None
    scale = Scale([region.iteration_count for region in regions])
    return scale.estimate(region.cost("own").insns for region in regions)


def _operation(name: str, effects: Effects) -> OperationEffect | None:
    return next((one for one in effects.operations if one.name == name), None)


def _step_of(name: str, effects: Effects) -> PathStep | None:
    found = _operation(name, effects)
    if found is None or found.costs is None:
        return None
    verdict, insns = found.verdict, found.costs.insns
    return PathStep(verdict.word, insns.effect, insns.percent, verdict.reason)


def _totals(effects: Sequence[Effects], names: Sequence[str]) -> list[HistoryTotal]:
    totals = [HistoryTotal(100.0)]
    for one in effects:
        some = tuple(found for found in one.operations if found.name in names)
        change = overall_change(msgspec.structs.replace(one, operations=some))
        words = dict(Counter(found.verdict.word.value for found in some))
        level = totals[-1].level * (change.value if change else 1.0)
        totals.append(HistoryTotal(level, change, words))
    return totals
