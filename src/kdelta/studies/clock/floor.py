# SPDX-License-Identifier: GPL-2.0-or-later
"""The floor of this machine: how far runs of one program under one kernel seem to differ."""

import math
from collections.abc import Iterator, Sequence

from kdelta.host.interrupt import interruptible
from kdelta.lab.progress import Progress
from kdelta.measures.clock.boots import medians
from kdelta.measures.clock.here import bundle_here, pairs_here
from kdelta.measures.clock.judged import timed_effects
from kdelta.measures.clock.results import BootFacts, TimedRun
from kdelta.measures.clock.settings import busy, unset
from kdelta.report.measured import Effect
from kdelta.studies.clock.model import ClockReport, OperationFloor
from kdelta.studies.clock.request import FloorRequest
from kdelta.studies.clock.study import timed_kernel, timing_facts

_SHOWN = ("load", "temperature")


def run_floor(request: FloorRequest, progress: Progress) -> ClockReport:
    """Return how far runs of a workload seem to differ here, in pairs. UserError for a workload
    that cannot run so, LabError for one that fails.
    """
    step = f"time {request.workload}"
    progress.expect("time", 1)
    program = bundle_here(request.workload, request.operations, progress.log)
    progress.begin(step)

    def doing(words: str) -> None:
        progress.doing(step, words)

    with interruptible():
        *_, timed = pairs_here((program, program), request.pairs, doing)
    progress.end(step, f"{request.pairs} pairs of runs")
    runs = [run for pair in timed.pairs for boot in (pair.base, pair.other) for run in boot.runs]
    facts = min(runs, key=lambda one: one.facts.when).facts
    kernel = timed_kernel(facts, 1, len(runs))
    found, ns = timed_effects(timed, float(request.margin)), medians(runs)
    return ClockReport(
        workload=request.workload,
        base=kernel,
        other=kernel,
        machine=timing_facts(facts, _SHOWN),
        pairs=request.pairs,
        found=found,
        warnings=(*busy(float(facts.load.partition(" ")[0] or 0)), *unset(facts)),
        notes=tuple(_notes(runs, facts)),
        floor=tuple(_floor(one, ns[one.region]) for one in found.effects),
    )


def _floor(effect: Effect, ns: float) -> OperationFloor:
    """Return the half width of the interval, and the least margin that it lies within, whichever
    run is the base.
    """
    assert effect.change is not None
    low, high = effect.change.low, effect.change.high
    if low <= -1 or math.isinf(high):
        return OperationFloor(effect.region, ns, math.inf, math.inf)
    ends = math.log1p(low), math.log1p(high)
    return OperationFloor(
        effect.region, ns, math.expm1((ends[1] - ends[0]) / 2), math.expm1(max(map(abs, ends)))
    )


def _notes(runs: Sequence[TimedRun], facts: BootFacts) -> Iterator[str]:
    yield (
        "a run is a process and no boot: what a kernel draws when it is booted is the same in all, "
        "so that boots of one kernel may differ by more than this"
    )
    if not facts.governor:
        yield (
            "this kernel shows no cpufreq: the firmware, or the host of a virtual machine, decides "
            "the frequency"
        )
    jumped = dict.fromkeys(name for run in runs for name in run.jumped)
    if jumped:
        yield f"left out where the clock jumped: {', '.join(jumped)}"
