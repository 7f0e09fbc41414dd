# SPDX-License-Identifier: GPL-2.0-or-later
"""What studies return, with what the store knows besides it, as reports."""

from collections.abc import Sequence

import msgspec

from kdelta.counts.model import RunCounts, merged_regions
from kdelta.cpus.model import CPU
from kdelta.infer.cycles.placement_model import CodeChange
from kdelta.infer.effects.effects import compare
from kdelta.infer.effects.marks import region_warnings
from kdelta.infer.effects.packets import packet_effects
from kdelta.report.model import (
    Compared,
    CompareReport,
    CycleReport,
    MoreRuns,
    ReportedCPU,
    ReportedRun,
    RunReport,
    Side,
    Unlike,
)
from kdelta.spec.run import RunStatus
from kdelta.store.model import Run
from kdelta.store.store import Store
from kdelta.studies.compare import study
from kdelta.studies.lab.command import COMMAND_REGION
from kdelta.studies.lab.judges import OperationRuns
from kdelta.studies.lab.lab import Done
from kdelta.studies.lab.reports import (
    attachment,
    config_changes,
    machine_facts,
    reported_cpu,
    reported_run,
    reported_side,
    unlike,
)
from kdelta.studies.recorded.recorded import own_regions
from kdelta.workloads.catalog import find_workload


def compare_reports(
    comparisons: Sequence[study.Comparison], store: Store
) -> tuple[CompareReport, ...]:
    """The report of one base against each of the others, for each CPU."""
    cpus = {one.cpu.name if one.cpu else "": None for one in comparisons}
    groups = [
        [one for one in comparisons if (one.cpu.name if one.cpu else "") == name] for name in cpus
    ]
    return tuple(_compare_report(group, store) for group in groups)


def _compare_report(comparisons: Sequence[study.Comparison], store: Store) -> CompareReport:
    base = comparisons[0].base
    machine = base.done or next((one.other.done for one in comparisons if one.other.done), ())
    return CompareReport(
        workload=comparisons[0].workload,
        machine=machine_facts(machine, store),
        base=_side(base, store),
        others=tuple(
            Compared(
                _side(one.other, store),
                one.effects or compare(one.base.counts, one.other.counts),
                _cycle_report(one, store),
                tuple(_more(more, store) for more in one.more),
                packet_effects(one.base.counts, one.other.counts),
                one.phases,
                config_changes(one.base.kernel, one.other.kernel),
            )
            for one in comparisons
        ),
        bytes_worked_on=_bytes_worked_on(comparisons[0].workload),
        cpu=_cpu(comparisons),
    )


def _cpu(comparisons: Sequence[study.Comparison]) -> ReportedCPU | None:
    """The CPU; of prices that were not measured, those that are in the effects."""
    if comparisons[0].cpu is None:
        return None
    cpu = reported_cpu(comparisons[0].cpu)
    effects = [effect for one in comparisons if one.cycles for effect in one.cycles.effects]
    if not effects:
        return cpu
    guessed = dict.fromkeys(kind for effect in effects for kind in effect.guessed)
    return msgspec.structs.replace(cpu, guessed=tuple(guessed))


def _cycle_report(one: study.Comparison, store: Store) -> CycleReport | None:
    if one.cpu is None or one.cycles is None:
        return None
    relinked = tuple(name for name, code in one.cycles.codes.items() if code is CodeChange.RELINKED)
    found = _unlike(one, one.cpu, store)
    return CycleReport(one.cycles.effects, relinked, found, one.cycles.notes, one.cycles.cut)


def _unlike(one: study.Comparison, cpu: CPU, store: Store) -> tuple[Unlike, ...]:
    """What either kernel did otherwise than on that CPU; what both did, once."""
    found: dict[str, Unlike] = {}
    for who, side in (("base", one.base), ("other", one.other)):
        done = next((done for done in side.done if done.counts is not None), None)
        for mine in unlike(cpu, done, store, who) if done else ():
            theirs = found.get(mine.text, msgspec.structs.replace(mine, kernels=(), regions=()))
            found[mine.text] = msgspec.structs.replace(
                theirs,
                kernels=(*theirs.kernels, who),
                regions=tuple(dict.fromkeys((*theirs.regions, *mine.regions))),
            )
    return tuple(found.values())


def _bytes_worked_on(workload: str) -> dict[str, int]:
    return {
        operation.name: operation.bytes_per_iteration
        for operation in find_workload(workload).operations
        if operation.bytes_per_iteration is not None
    }


def done_report(done: Done, store: Store) -> RunReport:
    """The report of a run that was just made or found."""
    return _run_report(reported_run(done.run, store, stored=done.stored), done, store)


def stored_report(run: Run, store: Store) -> RunReport:
    """The report of a run of the store."""
    counts = store.counts(run) if run.status is RunStatus.OK else None
    return _run_report(reported_run(run, store), Done(run, counts), store)


def _run_report(reported: ReportedRun, done: Done, store: Store) -> RunReport:
    return RunReport(
        run=reported,
        counts=done.counts,
        stdout=attachment(done.run, "stdout", store),
        stderr=attachment(done.run, "stderr", store),
        warnings=region_warnings(
            own_regions(merged_regions(done.counts or RunCounts(()))).values(), COMMAND_REGION
        ),
    )


def _side(side: study.RunSide, store: Store) -> Side:
    spec = side.kernel.spec if side.kernel else side.spec
    return reported_side(spec, side.kernel, side.done, side.failure, store)


def _more(more: OperationRuns, store: Store) -> MoreRuns:
    base, other = (
        tuple(reported_run(one.run, store, stored=one.stored) for one in done)
        for done in (more.base, more.other)
    )
    return MoreRuns(more.operation, base, other)
