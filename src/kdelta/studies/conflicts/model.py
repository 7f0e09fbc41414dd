# SPDX-License-Identifier: GPL-2.0-or-later
"""What a report of `kdelta conflicts` is made of, whatever its form."""

from fractions import Fraction

import msgspec

from kdelta.counts.conflicts import Conflicts
from kdelta.infer.conflicts.changes import RegionChange
from kdelta.report.model import Facts, KernelRuns


class ConflictSide(msgspec.Struct, frozen=True):
    """One kernel: its run, what CPUs contended for in it, and by region how often an iteration
    sends interrupts to other CPUs, by kind.
    """

    side: KernelRuns
    conflicts: tuple[Conflicts, ...] = ()
    sent: dict[str, dict[str, Fraction]] = {}

    @property
    def spec(self) -> str:
        return self.side.spec

    @property
    def release(self) -> str:
        return self.side.release

    def of(self, region: str) -> Conflicts | None:
        """Return what CPUs contended for in that region; None where it was not run."""
        return next((one for one in self.conflicts if one.region == region), None)


class ConflictsReport(msgspec.Struct, frozen=True):
    """One kernel, or two and how they differ, region by region, on so many CPUs.

    same_kernel  both are one kernel: nothing was changed
    """

    workload: str
    cpus: int
    machine: Facts
    sides: tuple[ConflictSide, ...]
    changes: tuple[RegionChange, ...] = ()
    same_kernel: bool = False
    warnings: tuple[str, ...] = ()
