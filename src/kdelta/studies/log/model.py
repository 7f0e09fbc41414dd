# SPDX-License-Identifier: GPL-2.0-or-later
"""What `kdelta log` reports, whatever the form: how figures moved from kernel to kernel.

Figures are instructions an iteration that the measured tasks execute; steps are from one kernel of
a series to the next.
"""

from fractions import Fraction
from typing import Literal

import msgspec

from kdelta.infer.effects.effects import Word
from kdelta.infer.effects.estimate import Estimate
from kdelta.infer.effects.history import GeometricChange
from kdelta.report.measured import Effect
from kdelta.report.model import Facts, ReportedCPU

REAL = (Word.SLOWER, Word.FASTER)
NOTABLE = (
    *REAL,
    Word.MIXED,
    Word.NOT_STEADY,
    Word.DEPENDS_ON_STATE,
    Word.DEPENDS_ON_SPEED,
    Word.PLACEMENT_ONLY,
    Word.UNRESOLVED,
)
"""Words that ask for a look, the worst first."""
"""The words of a step in what is executed, or in model cycles, that placement did not make."""


class HistoryKernel(msgspec.Struct, frozen=True):
    """A kernel. `name`: what distinguishes it from the others of its series; `date` in seconds
    since 1970: that of its commit, or when it was first run. `runs`: those that its figures are
    from.
    """

    name: str
    spec: str
    release: str
    identity: str
    version: str
    date: float
    dated: Literal["commit", "run"]
    runs: tuple[str, ...]
    subject: str = ""


class PathStep(msgspec.Struct, frozen=True):
    """What changed in the path since the kernel before; `percent` is None where that had zero."""

    word: Word
    effect: Estimate
    percent: Fraction | None
    reason: str = ""


class HistoryPoint(msgspec.Struct, frozen=True):
    """An operation on one kernel: None where it did not succeed, or for the first kernel's steps.
    `measured`: the steps by other measures; model cycles are known only on a CPU, where traces of
    both kernels are kept.
    """

    figure: Estimate | None
    step: PathStep | None = None
    measured: dict[str, Effect] = {}


class HistoryTrack(msgspec.Struct, frozen=True):
    """An operation on all kernels of a series, in their order."""

    operation: str
    points: tuple[HistoryPoint, ...]


class HistoryTotal(msgspec.Struct, frozen=True):
    """All operations on one kernel: `level` is 100 on the first kernel of the series, and `change`
    the factor from the kernel before, both as geometric means; `words`: how many operations' steps
    in the path have which verdict.
    """

    level: float
    change: GeometricChange | None = None
    words: dict[str, int] = {}


class HistorySeries(msgspec.Struct, frozen=True):
    """Kernels that ran the same on the same machine, in order. `ordered`: by what, in words. `cpu`:
    what the machine looks like, if that was asked for. `groups`: how the control groups of the
    kernels differ, empty where they are alike.
    """

    machine: Facts
    kernels: tuple[HistoryKernel, ...]
    tracks: tuple[HistoryTrack, ...]
    totals: tuple[HistoryTotal, ...]
    ordered: str = ""
    cpu: ReportedCPU | None = None
    notes: tuple[str, ...] = ()
    groups: str = ""


class HistoryReport(msgspec.Struct, frozen=True):
    """The whole. `operations`: those that were asked for, none for the summary over all.
    `left_out`: what is in the store and in none of the series, and why.
    """

    workload: str
    operations: tuple[str, ...]
    series: tuple[HistorySeries, ...]
    left_out: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
