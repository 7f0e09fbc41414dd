# SPDX-License-Identifier: GPL-2.0-or-later
"""What a comparison returns, with what the store knows besides it, as a report."""

import itertools
from collections.abc import Sequence

import msgspec

from kdelta.infer.effects.effects import Effects, compare_runs
from kdelta.infer.effects.packets import packet_effects
from kdelta.lab.attachments import KERNEL_LOG
from kdelta.lab.failed_program import lacked
from kdelta.lab.reports import (
    attachment,
    config_changes,
    facts_of_machine,
    merged_unlike,
    reported_cpu,
    reported_run,
    reported_side,
    unlike,
)
from kdelta.lab.work import Work
from kdelta.measures.cycles.measure import cycles_of
from kdelta.measures.model import RunSide
from kdelta.measures.path.gains import like_of
from kdelta.measures.path.judges import OperationRuns
from kdelta.measures.path.shared import are_alike
from kdelta.report.measured import placements_in
from kdelta.report.model import KernelRuns, Mismatch, ReportedCPU
from kdelta.store.store import Store
from kdelta.studies.compare.model import Compared, CompareReport, MoreRuns
from kdelta.studies.compare.parameters import GuestWords, warnings_on_parameters
from kdelta.studies.compare.study import Comparison

_SHOWN = ("cpuinfo", "vulnerabilities")
"""What guests show of their CPU, and of what their kernel does about it."""


def compare_reports(comparisons: Sequence[Comparison], store: Store) -> tuple[CompareReport, ...]:
    """The report of one base against each of the others, for each CPU."""
    cpus = {one.cpu.name if one.cpu else "": None for one in comparisons}
    groups = [
        [one for one in comparisons if (one.cpu.name if one.cpu else "") == name] for name in cpus
    ]
    return tuple(_compare_report(group, store) for group in groups)


def _compare_report(comparisons: Sequence[Comparison], store: Store) -> CompareReport:
    base = comparisons[0].base
    work = comparisons[0].work or Work(comparisons[0].workload)
    machine = base.done or next((one.other.done for one in comparisons if one.other.done), ())
    return CompareReport(
        workload=comparisons[0].workload,
        machine=facts_of_machine(machine, store),
        base=_side(base, store),
        others=tuple(
            Compared(
                _side(one.other, store),
                _effects(one, store),
                tuple(_more(more, store) for more in one.more),
                packet_effects(one.base.counts, one.other.counts),
                cycles.phases if (cycles := cycles_of(one.judged)) else {},
                config_changes(one.base.kernel, one.other.kernel),
                _unlike(one, store),
                one.gains,
                _output_differs(one, store) if work.program else "",
                tuple(of.found for of in one.judged if of.found.effects or of.found.notes),
            )
            for one in comparisons
        ),
        bytes_worked_on=dict(work.bytes_worked_on),
        cpu=_cpu(comparisons),
    )


def _effects(one: Comparison, store: Store) -> Effects:
    """The effects, with what is known of boot parameters that the kernels differ in."""
    sides = one.base, one.other
    alike = are_alike(one.base.kernel, one.other.kernel)
    effects = one.effects or compare_runs(one.base.counts, one.other.counts, alike=alike)
    if not all(side.counts for side in sides):
        return effects
    base, other = (side.kernel.spec if side.kernel else side.spec for side in sides)
    ours, theirs = (_guest_words(side, store) for side in sides)
    warnings = warnings_on_parameters((base, other), effects, (ours, theirs))
    if one.work and one.work.program:
        done = next(run.run for run in one.base.done if run.counts)
        warnings = (*warnings, *lacked(attachment(done, "stderr", store)))
    return msgspec.structs.replace(effects, warnings=warnings)


def _guest_words(side: RunSide, store: Store) -> GuestWords:
    """What guests say of a kernel, of which a run went well."""
    runs = [done.run for done in side.done if done.counts]
    logs = (attachment(run, KERNEL_LOG, store) for run in runs)
    shown = "".join(attachment(runs[0], name, store) for name in _SHOWN)
    return GuestWords(shown, tuple(filter(None, logs)))


def _output_differs(one: Comparison, store: Store) -> str:
    """How what a program printed under both kernels differs, in words; empty where it does not."""
    done = [next((run for run in side.done if run.counts), None) for side in (one.base, one.other)]
    for name in ("stdout", "stderr"):
        texts = [attachment(run.run, name, store).splitlines() for run in done if run]
        lines = itertools.zip_longest(*texts, fillvalue="")
        for number, (ours, *theirs) in enumerate(lines, start=1):
            if theirs and theirs[0] != ours:
                return f"line {number} of its {name} is {ours!r} under the base and {theirs[0]!r}"
    return ""


def _cpu(comparisons: Sequence[Comparison]) -> ReportedCPU | None:
    """Return the CPU; of costs that were not measured, those that are in the effects."""
    if comparisons[0].cpu is None:
        return None
    cpu = reported_cpu(comparisons[0].cpu)
    found = [placements_in(of.found for of in one.judged) for one in comparisons]
    effects = [effect for cycles in found for effect in cycles.values()]
    if not effects:
        return cpu
    guessed = dict.fromkeys(kind for effect in effects for kind in effect.without_measured_cost)
    return msgspec.structs.replace(cpu, without_measured_cost=tuple(guessed))


def _unlike(one: Comparison, store: Store) -> tuple[Mismatch, ...]:
    """Return what either kernel did otherwise than on the CPU; what both did, once."""
    cpu = like_of(one.cpu, one.base.done)
    if cpu is None:
        return ()
    firsts = [
        (who, next((done for done in side.done if done.counts is not None), None))
        for who, side in (("base", one.base), ("other", one.other))
    ]
    return merged_unlike(
        found for who, done in firsts if done for found in unlike(cpu, done, store, who)
    )


def _side(side: RunSide, store: Store) -> KernelRuns:
    spec = side.kernel.spec if side.kernel else side.spec
    return reported_side(spec, side.kernel, side.done, side.failure, store)


def _more(more: OperationRuns, store: Store) -> MoreRuns:
    base, other = (
        tuple(reported_run(one.run, store, stored=one.stored) for one in done)
        for done in (more.base, more.other)
    )
    return MoreRuns(more.operation, base, other)
