# SPDX-License-Identifier: GPL-2.0-or-later
"""From two folders of timed runs to verdicts: pairs of boots, decided as they come."""

import difflib
import statistics
from collections.abc import Iterator, Sequence

from kdelta.measures.clock.boots import TimedKernels, must_follow, paired, read_folder
from kdelta.measures.clock.judged import timed_effects
from kdelta.measures.clock.results import BootFacts, TimedRun
from kdelta.measures.clock.settings import unset
from kdelta.spec.errors import UserError
from kdelta.studies.clock.model import ClockReport, TimedKernel
from kdelta.studies.clock.request import ClockRequest

_LEAST_PAIRS = 2
_SHOWN = (
    "cpu_model", "microcode", "machine", "clock", "governor", "driver", "least_khz", "most_khz",
    "boost", "no_turbo", "smt", "online", "bundle",
)  # fmt: skip
_INSTRUCTIONS = ("user_instructions", "kernel_instructions")


def run_clock(request: ClockRequest) -> ClockReport:
    """Judge two folders of timed runs. UserError for what does not belong together, and for fewer
    than two pairs of boots.
    """
    base, other = read_folder(request.base), read_folder(request.other)
    must_follow(base, other)
    timed = paired(base, other)
    if len(timed.pairs) < _LEAST_PAIRS:
        raise UserError(
            f"there are not {_LEAST_PAIRS} pairs of boots to compare, but {len(timed.pairs)}",
            "a pair is a boot of each kernel, one after the other; a second run is no boot",
        )
    _must_have(timed, request.operations)
    facts = base[0].facts
    return ClockReport(
        workload=facts.workload,
        base=_kernel(base),
        other=_kernel(other),
        machine=timing_facts(facts),
        pairs=len(timed.pairs),
        found=timed_effects(timed, float(request.margin), request.operations),
        instructions=_instructions(timed),
        warnings=tuple(_warnings(timed, base, other)),
        notes=tuple(_notes(timed, [*base, *other])),
    )


def _must_have(timed: TimedKernels, operations: Sequence[str]) -> None:
    known = timed.differences()
    for name in operations:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise UserError(
                f"the files have no operation {name}",
                f"did you mean {near[0]}?" if near else f"there is: {', '.join(known)}",
            )


def timing_facts(facts: BootFacts, more: Sequence[str] = ()) -> dict[str, str]:
    """Return what of the machine bears on times, and these facts besides."""
    return {name: str(getattr(facts, name)) for name in (*_SHOWN, *more)}


def timed_kernel(facts: BootFacts, boots: int, runs: int) -> TimedKernel:
    """Return a kernel as it said itself, after so many boots and runs."""
    return TimedKernel(
        facts.release,
        facts.version,
        facts.build_id,
        facts.command_line,
        facts.clock_source,
        boots,
        runs,
    )


def _kernel(runs: Sequence[TimedRun]) -> TimedKernel:
    boots = len({one.facts.boot_id for one in runs})
    return timed_kernel(runs[0].facts, boots, len(runs))


def _instructions(timed: TimedKernels) -> dict[str, tuple[float, float]]:
    """Return the median over runs of what counters say, where both kernels' have them."""
    sides: list[dict[str, list[float]]] = [{}, {}]
    for pair in timed.pairs:
        for side, boot in zip(sides, (pair.base, pair.other), strict=True):
            for run in boot.runs:
                for name, counted in run.counters.items():
                    if all(one in counted for one in _INSTRUCTIONS):
                        total = sum(counted[one] for one in _INSTRUCTIONS)
                        side.setdefault(name, []).append(total)
    base, other = sides
    return {
        name: (statistics.median(base[name]), statistics.median(other[name]))
        for name in base
        if name in other
    }


def _warnings(
    timed: TimedKernels, base: Sequence[TimedRun], other: Sequence[TimedRun]
) -> Iterator[str]:
    facts = base[0].facts
    if timed.is_of_fixed_order:
        yield (
            "the same kernel was booted first in all pairs: a machine that warms up or drifts then "
            "looks like a slower kernel; toss a coin for each pair"
        )
    if facts.kernel == other[0].facts.kernel:
        yield "both folders are of one kernel: what differs is the machine's own floor"
    yield from unset(facts)


def _notes(timed: TimedKernels, runs: Sequence[TimedRun]) -> Iterator[str]:
    yield (
        "a verdict is on these two builds: what their layouts cost is in it, and the next build of "
        "either may have other ones"
    )
    for name, count in zip(("the base", "the other kernel"), timed.alone, strict=True):
        if count:
            yield (
                f"boots of {name} without one of the other kernel right before or behind them, "
                f"which count for nothing: {count}"
            )
    if any(run.refused for run in runs):
        yield (
            "the kernel's instructions are not counted: perf_event_paranoid is "
            f"{runs[0].facts.paranoid}; as root: sysctl kernel.perf_event_paranoid=1"
        )
    for run in runs:
        if run.jumped:
            yield f"{run.path}: the clock jumped in {', '.join(run.jumped)}: left out there"
