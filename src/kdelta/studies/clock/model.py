# SPDX-License-Identifier: GPL-2.0-or-later
"""What a report of timed kernels is made of."""

import msgspec

from kdelta.report.measured import MeasuredEffects


class TimedKernel(msgspec.Struct, frozen=True):
    """A kernel as it said itself, and how often it was booted and timed."""

    release: str
    version: str
    build_id: str
    command_line: str
    clock_source: str
    boots: int
    runs: int


class OperationFloor(msgspec.Struct, frozen=True):
    """How far pairs of runs of one operation under one kernel seem to differ.

    ns          of an iteration, the median over all runs
    half_width  of the interval of their difference, a fraction; infinite where it is not known
    margin      the least one within which as many pairs show that times are the same
    """

    region: str
    ns: float
    half_width: float
    margin: float


class ClockReport(msgspec.Struct, frozen=True):
    """Two kernels timed on one machine; or one with itself, for the floor of the machine.

    machine       what is the same in all runs, and what of it bears on times
    pairs         how many pairs of boots were compared
    found         the verdicts; figures are nanoseconds an iteration, the median over boots
    instructions  by region, retired instructions of an iteration in the base and in the other,
                  where the machine counts them
    floor         by operation, of one kernel whose pairs are runs; empty for two kernels
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
    floor: tuple[OperationFloor, ...] = ()
