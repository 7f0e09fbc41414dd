# SPDX-License-Identifier: GPL-2.0-or-later
"""What runs of bundles counted by the CPU's counters, and why they did not where they did not."""

import errno
import os
import statistics
from collections.abc import Sequence

import msgspec

from kdelta.infer.clock.counters import Retired
from kdelta.measures.clock.results import TimedRegion, TimedRun
from kdelta.spec.errors import UserError

_USER, _KERNEL = "user_instructions", "kernel_instructions"
_REFUSED = (errno.EPERM, errno.EACCES)
_NO_PMU = (errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP)
_MOSTLY = 0.99
"""Of the time that a counter is wanted: that it is there for less means that it took turns."""


def retired(runs: Sequence[TimedRun]) -> dict[str, Retired]:
    """Return by region what the CPU retired, the median over all passes. UserError, with what to do
    about it, where nothing was counted.
    """
    passes: dict[str, list[Retired]] = {}
    failed = 0
    for run in runs:
        for line in run.content.splitlines()[1:-1]:
            region = msgspec.json.decode(line, type=TimedRegion)
            failed = failed or region.counter_errno
            if region.region not in run.jumped and {_USER, _KERNEL} & set(region.counters):
                passes.setdefault(region.region, []).append(_of(region))
    if not passes:
        raise _nothing(failed, runs[0])
    return {name: _median(found) for name, found in passes.items()}


def _of(region: TimedRegion) -> Retired:
    found = {name: region.counters[name] for name in (_USER, _KERNEL) if name in region.counters}
    each = {
        name: count * wanted / running / region.iterations
        for name, (count, wanted, running) in found.items()
        if running
    }
    return Retired(
        each.get(_USER),
        each.get(_KERNEL),
        region.ns / region.iterations,
        region.iterations,
        len(region.samples),
        min(1.0, max(wanted for _, wanted, _ in found.values()) / region.ns),
        any(running < _MOSTLY * wanted for _, wanted, running in found.values()),
    )


def _median(passes: Sequence[Retired]) -> Retired:
    def middle(name: str) -> float | None:
        values = [getattr(one, name) for one in passes]
        known = [value for value in values if value is not None]
        return statistics.median(known) if known else None

    figures = {name: middle(name) for name in ("user", "kernel", "ns", "iterations", "samples")}
    counted = min(one.counted for one in passes)
    shared = any(one.shared for one in passes)
    return msgspec.convert({**figures, "counted": counted, "shared": shared}, Retired)


def _nothing(failed: int, run: TimedRun) -> UserError:
    """Return why nothing was counted, by the error that the kernel gave."""
    if failed in _REFUSED:
        return UserError(
            "the kernel does not let programs count instructions: perf_event_paranoid is "
            f"{run.facts.paranoid or 'not known'}",
            "as root: sysctl kernel.perf_event_paranoid=1, and run the bundle again",
        )
    if failed in _NO_PMU:
        return UserError(
            f"the CPU shows no counters of instructions to {run.facts.release}",
            "a virtual machine needs a virtual PMU (QEMU: -accel kvm -cpu host,pmu=on); many "
            "clouds have it on whole machines only",
        )
    if failed == errno.ENOSYS:
        return UserError(
            f"{run.facts.release} cannot count instructions", "it needs CONFIG_PERF_EVENTS=y"
        )
    why = os.strerror(failed) if failed else "no region has a count"
    return UserError(f"nothing was counted: {why}", "run the bundle again")
