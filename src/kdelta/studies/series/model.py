# SPDX-License-Identifier: GPL-2.0-or-later
"""What a report of `kdelta series` is made of, whatever its form.

Effects are what patches cost, by region: instructions an iteration (the measured tasks' own,
lookups by address apart), or a virtual second for the rows of interrupts and other tasks.
"""

from fractions import Fraction

import msgspec

from kdelta.infer.effects.estimate import Estimate
from kdelta.infer.search.minimal import MinimalAnswer
from kdelta.infer.search.search_model import (
    InteractionAnswer,
    PatchAnswer,
    PatchGroup,
    PatchNeed,
    PatchOutcome,
    Proof,
    RegionSum,
    View,
)
from kdelta.report.measured import MeasuredEffects
from kdelta.report.model import Facts, KernelRuns
from kdelta.studies.search.model import AblatedRegion, AblationBuild


class SeriesRow(msgspec.Struct, frozen=True):
    """A patch. `objects`: how many it reaches, `alive`: of those that executed code depends on
    (None: not looked at). `earlier`: what a branch of measured patches says of it. `measured`: by
    further measures, on top of those before it.
    """

    answer: PatchAnswer
    subject: str = ""
    files: tuple[str, ...] = ()
    why: str = ""
    objects: int | None = None
    alive: int | None = None
    earlier: tuple[str, ...] = ()
    measured: tuple[MeasuredEffects, ...] = ()

    @property
    def name(self) -> str:
        return self.answer.name


class SeriesGroup(PatchGroup, frozen=True):
    """Patches that were not split, with what further measures say of them, as of a patch."""

    measured: tuple[MeasuredEffects, ...] = ()


class Minimal(msgspec.Struct, frozen=True):
    """The smallest set with the effect, what it does, by region, and the part of the whole effect
    in a region by which it may differ. `measured`: what it does, by further measures.
    """

    answer: MinimalAnswer
    effects: dict[str, Estimate]
    within: Fraction
    measured: tuple[MeasuredEffects, ...] = ()


class KeptBranch(msgspec.Struct, frozen=True):
    """A branch that was written: its tip, the patches on it, and those that were left out."""

    branch: str
    tip: str
    kept: tuple[str, ...]
    dropped: tuple[str, ...] = ()
    marked: tuple[str, ...] = ()


class SeriesReport(msgspec.Struct, frozen=True):
    """The whole. `words`: what named the patches; `ends`: the tree without and with all of them.
    `mean`: the account of the mean over regions, in per cent of the first, where runs have it.
    `measured`: what all patches do, by further measures.
    """

    tree: str
    words: tuple[str, ...]
    ends: tuple[KernelRuns, KernelRuns]
    workloads: tuple[str, ...]
    machine: Facts
    views: tuple[View, ...]
    rows: tuple[SeriesRow, ...]
    regions: tuple[AblatedRegion, ...] = ()
    groups: tuple[SeriesGroup, ...] = ()
    needs: tuple[PatchNeed, ...] = ()
    interactions: tuple[InteractionAnswer, ...] = ()
    proof: Proof | None = None
    minimal: Minimal | None = None
    kept: KeptBranch | None = None
    builds: tuple[AblationBuild, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    failure: str = ""
    mean: RegionSum | None = None
    measured: tuple[MeasuredEffects, ...] = ()

    def of(self, outcome: PatchOutcome) -> list[SeriesRow]:
        return [row for row in self.rows if row.answer.outcome is outcome]
