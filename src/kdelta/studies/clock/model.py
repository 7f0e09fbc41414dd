# SPDX-License-Identifier: GPL-2.0-or-later
"""What a report of timed kernels is made of."""

import msgspec

from kdelta.measures.model import MeasuredEffects


class TimedKernel(msgspec.Struct, frozen=True):
    """A kernel as it said itself, and how often it was booted and timed."""

    release: str
    version: str
    build_id: str
    command_line: str
    clock_source: str
    boots: int
    runs: int


class ClockReport(msgspec.Struct, frozen=True):
    """Two kernels timed on one machine.

    machine       what is the same in all runs, and what of it bears on times
    pairs         how many pairs of boots were compared
    found         the verdicts; figures are nanoseconds an iteration, the median over boots
    instructions  by region, retired instructions of an iteration in the base and in the other,
                  where the machine counts them
    """

    workload: str
    base: TimedKernel
    other: TimedKernel
    machine: dict[str, str]
    pairs: int
    found: MeasuredEffects
    instructions: dict[str, tuple[float, float]] = {}
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
