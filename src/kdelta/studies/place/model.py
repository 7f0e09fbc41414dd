# SPDX-License-Identifier: GPL-2.0-or-later
"""What `kdelta place` reports, whatever the form."""

import msgspec

from kdelta.infer.cycles.ensembles import Interval
from kdelta.measures.cycles.cut import CutRegion
from kdelta.report.measured import MeasuredEffects
from kdelta.report.model import Facts, KernelRuns, Mismatch, ReportedCPU

_FEW_MISSES = 50


class PlacedMisses(msgspec.Struct, frozen=True):
    """Misses of one kind, an iteration: in the layout as linked, as predicted for the order, in the
    median and the best of the random layouts. associative: of the order, if a cache of the same
    size had no sets; None where that is not known.
    """

    as_linked: float
    predicted: float
    median: float
    best: float
    associative: float | None
    methods: dict[str, float]

    @property
    def pays(self) -> float:
        """By how many misses the order is worse than what was linked; 0 if it is not."""
        return max(0.0, self.predicted - self.as_linked)


class PlacedRegion(msgspec.Struct, frozen=True):
    """One region: its misses by kind, and its model cycles an iteration as linked and as
    predicted, from the lowest prices to the highest.
    """

    name: str
    weight: float
    iterations: int
    misses: dict[str, PlacedMisses]
    as_linked: Interval
    predicted: Interval


class AppliedRegion(msgspec.Struct, frozen=True):
    """One region on the kernel as linked, and relinked in the order: L1I misses an iteration of
    its own work. as_linked and measured: by the trace of each; median, best and predicted: as in
    PlacedMisses. path: own instructions an iteration of the relinked kernel, less
    those of the one as linked.
    """

    name: str
    iterations: int
    as_linked: float
    median: float
    best: float
    predicted: float
    measured: float
    path: float

    @property
    def pays(self) -> float:
        """By how many misses the relinked kernel is worse than what was linked; 0 if not."""
        return max(0.0, self.measured - self.as_linked)

    @property
    def is_as_predicted(self) -> bool:
        """Whether the prediction is right within 1 % or 50 misses, all iterations together."""
        off = abs(self.measured - self.predicted)
        return off <= self.measured / 100 or off * self.iterations <= _FEW_MISSES

    @property
    def is_halved(self) -> bool:
        """Whether half of the random layouts have misses, and at least twice as many."""
        return self.median > 0 and 2 * self.measured <= self.median


class Applied(msgspec.Struct, frozen=True):
    """The kernel relinked in the order, and what it was measured to do; no regions if it could not
    be linked, or if a run of it failed. measured: against the kernel as linked, by further
    measures.
    """

    kernel: KernelRuns
    regions: tuple[AppliedRegion, ...] = ()
    warnings: tuple[str, ...] = ()
    measured: tuple[MeasuredEffects, ...] = ()
    notes: tuple[str, ...] = ()

    def total(self, column: str) -> float:
        """A column's misses of the whole workload: all regions, all their iterations."""
        found: float = sum(getattr(one, column) * one.iterations for one in self.regions)
        return found


class PlaceReport(msgspec.Struct, frozen=True):
    """The order that was found for a kernel; no regions if a run failed.

    file: where the order is, "" if nothing better than the layout as linked was found. functions:
    how many names it has; padding: how many of them are never executed, and only fill. method: by
    which it came about. costs: of each method what misses cost, fully
    exposed, as a fraction of what the instructions cost, the mean over regions by weight; median
    and best: the same over random layouts. evaluations: orders that were judged in the search.
    applied: None if it was not asked for, or if there was no order to apply. cut: regions whose
    trace was cut off, which are not among the regions.
    """

    workloads: tuple[str, ...]
    cpu: ReportedCPU
    caches: tuple[str, ...]
    machine: Facts
    kernel: KernelRuns
    layouts: int
    seed: int
    file: str = ""
    functions: int = 0
    padding: int = 0
    method: str = ""
    costs: dict[str, float] = {}
    median: float = 0.0
    best: float = 0.0
    evaluations: int = 0
    regions: tuple[PlacedRegion, ...] = ()
    cut: tuple[CutRegion, ...] = ()
    mismatches: tuple[Mismatch, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    applied: Applied | None = None

    def payers(self) -> tuple[PlacedRegion, ...]:
        """The regions that have more misses of any kind than as linked."""
        return tuple(
            one for one in self.regions if any(found.pays for found in one.misses.values())
        )
