# SPDX-License-Identifier: GPL-2.0-or-later
"""A report of two kernels that were timed on a machine."""

import math

from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.effects.effects import Word
from kdelta.report.measured import Effect, MeasuredEffects
from kdelta.studies.clock.model import ClockReport, OperationFloor, TimedKernel

_OLD = TimedKernel("6.1.0", "Linux version 6.1.0", "a" * 40, "quiet", "tsc", 8, 9)
_NEW = TimedKernel("6.12.0", "Linux version 6.12.0", "b" * 40, "quiet", "tsc", 8, 8)
_ONE = TimedKernel("6.12.0", "Linux version 6.12.0", "b" * 40, "quiet", "tsc", 1, 14)


def _effect(
    name: str, word: Word, base: float, change: tuple[float, float], why: str = ""
) -> Effect:
    low, high = change
    middle = base * (1 + (low + high) / 2) if math.isfinite(high) else base
    return Effect(
        name, word, Interval(base, base), Interval(middle, middle), Interval(low, high), why
    )


def clock_report() -> ClockReport:
    """Return a report with a verdict of each sort."""
    effects = (
        _effect("getppid", Word.SLOWER, 81.5, (0.02, 0.05)),
        _effect("stat", Word.FASTER, 812.0, (-0.11, -0.04)),
        _effect("uname", Word.SAME, 140.2, (-0.004, 0.006)),
        _effect(
            "fork", Word.UNRESOLVED, 51_200.0, (-1.0, math.inf), "8 pairs of boots do not decide"
        ),
    )
    return ClockReport(
        workload="syscalls",
        base=_OLD,
        other=_NEW,
        machine={"cpu_model": "AMD EPYC", "governor": "schedutil", "boost": ""},
        pairs=8,
        found=MeasuredEffects("times", "nanoseconds", effects, " by the clock"),
        instructions={"getppid": (310.0, 322.0)},
        warnings=("the cpufreq governor is schedutil, which moves the frequency",),
        notes=("a verdict is on these two builds",),
    )


def floor_report() -> ClockReport:
    """Return the floor of a machine, which is not known of one operation."""
    effects = (
        _effect("getppid", Word.SAME, 81.5, (-0.002, 0.004)),
        _effect(
            "fork", Word.UNRESOLVED, 51_200.0, (-1.0, math.inf), "7 pairs of runs do not decide"
        ),
    )
    return ClockReport(
        workload="syscalls",
        base=_ONE,
        other=_ONE,
        machine={"cpu_model": "AMD EPYC", "governor": "", "load": "0.90 0.10 0.00 1/99 7"},
        pairs=7,
        found=MeasuredEffects("times", "nanoseconds", effects, " by the clock"),
        warnings=("SMT is on: another thread of the core may take part of it",),
        notes=("a run is a process and no boot",),
        floor=(
            OperationFloor("getppid", 81.52, 0.003, 0.004),
            OperationFloor("fork", 51_180.0, math.inf, math.inf),
        ),
    )
