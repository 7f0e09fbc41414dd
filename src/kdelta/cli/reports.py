# SPDX-License-Identifier: GPL-2.0-or-later
"""What studies return, with what the store knows beside it, as reports."""

from collections.abc import Mapping, Sequence

from kdelta.cpus.model import CPU
from kdelta.cpus.representative import differences
from kdelta.infer.effects import compare
from kdelta.infer.placement_model import Code
from kdelta.infer.representative import marked_regions
from kdelta.report.model import (
    Compared,
    CompareReport,
    CycleReport,
    ReportedCPU,
    ReportedRun,
    RunReport,
    Side,
    Unlike,
)
from kdelta.spec.run import RunStatus
from kdelta.store.model import Run
from kdelta.store.store import Store
from kdelta.studies import compare as study
from kdelta.studies.lab import Done
from kdelta.studies.reports import attachment, machine_facts, reported_run, reported_side
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
            )
            for one in comparisons
        ),
        bytes_worked_on=_bytes_worked_on(comparisons[0].workload),
        cpu=_reported_cpu(comparisons[0].cpu),
    )


def _reported_cpu(cpu: CPU | None) -> ReportedCPU | None:
    if cpu is None:
        return None
    guessed = tuple(kind for kind, price in cpu.misses.items() if not price.calibrated)
    return ReportedCPU(cpu.name, cpu.title, tuple(cpu.misses), guessed)


def _cycle_report(one: study.Comparison, store: Store) -> CycleReport | None:
    if one.cpu is None or one.cycles is None:
        return None
    relinked = tuple(name for name, code in one.cycles.codes.items() if code is Code.RELINKED)
    unlike = _unlike(one.cpu, {"base": one.base, "other": one.other}, store)
    return CycleReport(one.cycles.effects, relinked, unlike, one.cycles.notes)


def _unlike(cpu: CPU, sides: Mapping[str, study.Side], store: Store) -> tuple[Unlike, ...]:
    """What the kernels did otherwise than on that CPU, with the regions that hang on it."""
    texts: dict[str, str] = {}
    kernels: dict[str, list[str]] = {}
    regions: dict[str, dict[str, None]] = {}
    for word, side in sides.items():
        done = next((done for done in side.done if done.counts is not None), None)
        if done is None or done.counts is None:
            continue
        found = differences(
            cpu,
            attachment(done.run, "cpuinfo", store),
            attachment(done.run, "vulnerabilities", store),
        )
        marks = marked_regions(found, done.counts)
        for difference in found:
            texts[difference.text] = difference.path.name
            kernels.setdefault(difference.text, []).append(word)
            named = regions.setdefault(difference.text, {})
            named.update((one.region, None) for one in marks if one.path == difference.path.name)
    return tuple(
        Unlike(name, text, tuple(kernels[text]), tuple(regions[text]))
        for text, name in texts.items()
    )


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
    )


def _side(side: study.Side, store: Store) -> Side:
    spec = side.kernel.spec if side.kernel else side.spec
    return reported_side(spec, side.kernel, side.done, side.failure, store)
