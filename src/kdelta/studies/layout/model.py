# SPDX-License-Identifier: GPL-2.0-or-later
"""What `kdelta layout` reports, whatever the form."""

import msgspec

from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.cycles.sensitivity import CycleRange, Distribution, Replaced
from kdelta.infer.effects.estimate import Estimate
from kdelta.measures.cycles.cut import CutRegion
from kdelta.report.model import Facts, KernelRuns, Mismatch, ReportedCPU

REPLACEMENTS: dict[str, str] = {"random": "at random", "round-robin": "in turn"}
"""How a cache replaces, where that is not LRU, in words."""


class Aligned(msgspec.Struct, frozen=True):
    """Misses an iteration, by kind, with each function aligned to so many bytes: in the order that
    the kernel has, and over random orders.
    """

    bytes: int
    same_order: dict[str, float]
    drawn: dict[str, Distribution]


class Collision(msgspec.Struct, frozen=True):
    """Two functions (or one, with itself) that put out each other's lines in the layout as linked:
    misses an iteration of any context, in which sets, and what these cost in model cycles.
    """

    functions: tuple[str, str]
    misses: float
    sets: tuple[int, ...]
    cycles: Interval


class LayoutPhase(msgspec.Struct, frozen=True):
    """One phase of a region (spec/phase.py), an iteration, of all tasks and interrupts: how often
    it is called, 0 for what is in no phase; its instructions; its misses by kind; model cycles, in
    which its special instructions are as many as its part of their functions.
    """

    name: str
    calls: float
    insns: float
    misses: dict[str, Distribution]
    cycles: CycleRange


class LayoutRegion(msgspec.Struct, frozen=True):
    """One region. misses: kind -> misses an iteration of its own work; draws: those of each layout.
    insns: of its own work an iteration. collisions: of lines, the costliest first; colliding: how
    many misses an iteration they have together, with those of the pairs that are not named.
    replacement: by kind, where the CPU's cache replaces otherwise than by LRU, what LRU would make.
    phases: of a workload that has any, what is in none last. data: by kind, what accesses to data
    miss, which no layout changes.
    """

    name: str
    iterations: int
    insns: Estimate
    misses: dict[str, Distribution]
    draws: dict[str, tuple[float, ...]]
    cycles: CycleRange
    aligned: tuple[Aligned, ...]
    collisions: tuple[Collision, ...]
    colliding: float
    pairs: int
    replacement: dict[str, Replaced] = {}
    phases: tuple[LayoutPhase, ...] = ()
    data: dict[str, float] = {}

    @property
    def layouts(self) -> int:
        """In how many random layouts it was replayed: fewer than wanted where its branches are so
        many that its front end would take too long.
        """
        return min((len(counts) for counts in self.draws.values()), default=0)


class LayoutReport(msgspec.Struct, frozen=True):
    """A kernel under a workload on a CPU; no regions if its run failed.

    caches: what is replayed, in words. layouts, seed: of the ensemble. executed, movable: functions
    that the workload executes, and how many of them a relink can move. alignment: what most of
    these are aligned to, in bytes. cut: regions whose trace was cut off; such as have no trace are
    not among the regions.
    """

    workload: str
    cpu: ReportedCPU
    caches: tuple[str, ...]
    machine: Facts
    kernel: KernelRuns
    layouts: int
    seed: int
    executed: int = 0
    movable: int = 0
    alignment: int = 0
    regions: tuple[LayoutRegion, ...] = ()
    cut: tuple[CutRegion, ...] = ()
    mismatches: tuple[Mismatch, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def orders(self) -> str:
        """The ensemble in words, and which regions were replayed in a part of it."""
        text = f"{self.layouts} random orders, seed {self.seed}"
        fewer = [one for one in self.regions if one.draws and one.layouts < self.layouts]
        if not fewer:
            return text
        named = ", ".join(f"{one.name} in {one.layouts}" for one in fewer)
        return f"{text}; for their many branches in fewer: {named}"

    @property
    def unmissed(self) -> tuple[str, str]:
        """How model cycles without the misses that layouts change are called, and what they still
        have of misses.
        """
        if any(one.data for one in self.regions):
            return "no misses of code", "those of data, but in the L2, are in it"
        return "without misses", ""
