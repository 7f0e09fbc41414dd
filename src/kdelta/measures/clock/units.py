# SPDX-License-Identifier: GPL-2.0-or-later
"""Times in the units that people publish: cycles a call, MB/s, Mb/s, seconds."""

import statistics
from collections.abc import Iterator, Mapping

from kdelta.measures.clock.boots import TimedKernels
from kdelta.measures.clock.results import TimedRun
from kdelta.report.measured import OtherFigure
from kdelta.spec.errors import UserError
from kdelta.workloads.catalog import Workload, find_workload

_LONG_NS = 10_000_000
"""From here on seconds are what is published: real, user and sys."""
_CYCLES = ("user_cycles", "kernel_cycles")


def published(timed: TimedKernels) -> tuple[OtherFigure, ...]:
    """Return the medians over boots in other units, where both kernels have them: megabytes a
    second, or megabits and iterations for a network, of operations whose bytes are known; seconds
    of those that are long; and cycles an iteration where they were counted.
    """
    workload = _workload_of(timed)
    sides = [_figures(timed, side, workload) for side in ("base", "other")]
    return tuple(
        OtherFigure(region, unit, statistics.median(values), statistics.median(sides[1][key]))
        for key, values in sides[0].items()
        if key in sides[1]
        for region, unit in (key,)
    )


def _figures(
    timed: TimedKernels, side: str, workload: Workload | None
) -> dict[tuple[str, str], list[float]]:
    """Return what runs of one side come to, by region and unit."""
    found: dict[tuple[str, str], list[float]] = {}
    for pair in timed.pairs:
        for run in getattr(pair, side).runs:
            for region, ns in run.ns.items():
                for unit, value in _of(run, region, ns, workload).items():
                    found.setdefault((region, unit), []).append(value)
    return found


def _of(run: TimedRun, region: str, ns: float, workload: Workload | None) -> dict[str, float]:
    """Return one figure in all other units that it has."""
    found: dict[str, float] = {}
    size = _bytes_of(workload).get(region)
    if workload and workload.is_network:
        found |= {"Mb/s": 8e3 * size / ns} if size else {}
        found["iterations a second"] = 1e9 / ns
    elif size:
        found["MB/s"] = 1e3 * size / ns
    if ns >= _LONG_NS and region in run.used:
        user, system = run.used[region]
        found |= {"s real": ns / 1e9, "s user": user / 1e9, "s sys": system / 1e9}
    counted = run.counters.get(region, {})
    if all(name in counted for name in _CYCLES):
        found["cycles"] = sum(counted[name] for name in _CYCLES)
    return found


def _bytes_of(workload: Workload | None) -> Mapping[str, int]:
    operations = workload.operations if workload else ()
    return {one.name: one.bytes_per_iteration for one in operations if one.bytes_per_iteration}


def _workload_of(timed: TimedKernels) -> Workload | None:
    """Return what was timed; None of a program, and of a workload of another kdelta."""
    names: Iterator[str] = (pair.base.runs[0].facts.workload for pair in timed.pairs)
    try:
        return find_workload(next(names, ""))
    except UserError:
        return None
