# SPDX-License-Identifier: GPL-2.0-or-later
"""What a report on counters is made of."""

import msgspec

from kdelta.infer.clock.counters import CheckedOperation
from kdelta.report.model import Facts, KernelRuns


class CountersReport(msgspec.Struct, frozen=True):
    """What a CPU retired in operations, and what exact runs of the same kernel count.

    kernel      with its exact runs
    emulated    the machine of these
    machine     what bundles said of the other machine
    runs        how many runs of bundles there are
    margin      by which part of the exact count what is left may differ
    marks       what a mark costs in user instructions; None if no run has the operation for it
    interrupts  instructions a millisecond of handlers on the exact runs' time
    more_flags  features that only the counted CPU has; `fewer_flags`: only the emulated one
    """

    workload: str
    kernel: KernelRuns
    emulated: Facts
    machine: dict[str, str]
    runs: int
    margin: float
    operations: tuple[CheckedOperation, ...]
    marks: float | None = None
    interrupts: float = 0.0
    more_flags: tuple[str, ...] = ()
    fewer_flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
