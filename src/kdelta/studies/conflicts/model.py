# SPDX-License-Identifier: GPL-2.0-or-later
"""What a report of `kdelta conflicts` is made of, whatever its form."""

from fractions import Fraction

import msgspec

from kdelta.counts.conflicts import Conflicts
from kdelta.cpus.model import LineTransfer
from kdelta.infer.conflicts.changes import RegionChange
from kdelta.infer.conflicts.interrupts import InterruptSender
from kdelta.infer.conflicts.waiting import Waiting
from kdelta.report.model import Facts, KernelRuns

TURN = "turn_us"
"""The fact of a run's machine that says that its CPUs had short turns."""


class ConflictSide(msgspec.Struct, frozen=True):
    """One kernel: its runs; of the first, in which CPUs have long turns, what they contended for,
    and by region how often an iteration sends interrupts to other CPUs, by kind, and by which
    callers, where these were followed; of the others, in which turns are short, the regions in
    which one CPU waits for another.
    """

    side: KernelRuns
    conflicts: tuple[Conflicts, ...] = ()
    sent: dict[str, dict[str, Fraction]] = {}
    waits: tuple[Waiting, ...] = ()
    senders: dict[str, tuple[InterruptSender, ...]] = {}

    @property
    def spec(self) -> str:
        return self.side.spec

    @property
    def release(self) -> str:
        return self.side.release

    def of(self, region: str) -> Conflicts | None:
        """Return what CPUs contended for in that region; None where it was not run."""
        return next((one for one in self.conflicts if one.region == region), None)

    @property
    def short_turns(self) -> int:
        """Return how many of its runs had short turns."""
        return sum(TURN in one.run.machine for one in self.side.runs)


class ReportedTransfer(msgspec.Struct, frozen=True):
    """How long lines take from CPU to CPU on a CPU that was named; None where that is not known."""

    cpu: str
    transfer: LineTransfer | None = None
    source: str = ""


class ConflictsReport(msgspec.Struct, frozen=True):
    """One kernel, or two and how they differ, region by region, on so many CPUs.

    same_kernel  both are one kernel: nothing was changed
    on           the CPU that was named, if any
    """

    workload: str
    cpus: int
    machine: Facts
    sides: tuple[ConflictSide, ...]
    changes: tuple[RegionChange, ...] = ()
    same_kernel: bool = False
    warnings: tuple[str, ...] = ()
    on: ReportedTransfer | None = None

    @property
    def regions(self) -> tuple[str, ...]:
        """Return those that any of the kernels has."""
        return tuple(dict.fromkeys(one.region for side in self.sides for one in side.conflicts))
