# SPDX-License-Identifier: GPL-2.0-or-later
"""What measures besides the path say of kernels that an ablation measured: A to B, and each option
group that two of them show.

Nothing is built for it. An option group whose effect was inferred from kernels with other option
groups flipped as well has a path effect only.
"""

from collections.abc import Mapping, Sequence

import msgspec

from kdelta.cpus.model import CPU
from kdelta.infer.cycles.placement_model import PlacementEffect
from kdelta.infer.effects.effects import compare
from kdelta.infer.search.search_model import FlipSet
from kdelta.lab.lab import Lab
from kdelta.lab.reports import merged_unlike, unlike
from kdelta.measures.cycles.effects import Cycles
from kdelta.measures.cycles.measure import cycles_of
from kdelta.measures.model import (
    Effect,
    Judgement,
    Measure,
    MeasuredEffects,
    RunPair,
    measured,
)
from kdelta.report.model import Mismatch
from kdelta.studies.ablate.model import GroupCycles
from kdelta.studies.search.measure import Bench, MeasuredKernel

Kernels = Mapping[FlipSet, MeasuredKernel]
"""A, B, and what ran well between them, by the option groups that are flipped."""


class MeasuredPair(msgspec.Struct, frozen=True):
    """What measures say of two kernels. `cycles`: model cycles by region, whose own form is kept;
    `measured`: what all others say, their regions named as the ablation names them.
    """

    cycles: dict[str, PlacementEffect] = {}
    measured: tuple[MeasuredEffects, ...] = ()


class FoundPairs(msgspec.Struct, frozen=True):
    """Effects from A to B, and of each option group that they are known of: the option groups that
    are flipped in both kernels, and the pair. What A or B did otherwise than on the CPU; and what
    is to be known about effects.
    """

    whole: MeasuredPair
    groups: dict[str, tuple[tuple[str, ...], MeasuredPair]]
    mismatches: tuple[Mismatch, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def cycles(self) -> dict[str, GroupCycles]:
        """Return the model cycles of option groups, where these were asked for."""
        known = self.whole.cycles
        return {
            name: GroupCycles(flipped, pair.cycles)
            for name, (flipped, pair) in self.groups.items()
            if known
        }

    def measured(self, name: str) -> tuple[MeasuredEffects, ...]:
        """Return what further measures say of an option group."""
        pair = self.groups.get(name)
        return pair[1].measured if pair else ()


class PairStudy:
    """Judges pairs of kernels by all measures of a request. Those on top of one kernel follow each
    other, so that a measure may keep what it knows of it.
    """

    def __init__(self, measures: Sequence[Measure], bench: Bench, lab: Lab) -> None:
        self._measures = measures
        self._bench = bench
        self._lab = lab
        self._notes: dict[str, None] = {}

    async def find(self, kernels: Kernels, units: Sequence[str], cpu: CPU | None) -> FoundPairs:
        """Return all that these kernels show; option groups: all of them, so that B is where they
        are flipped. cpu: the one that was named.
        """
        before, after = kernels[frozenset()], kernels[frozenset(units)]
        whole = await self._between(before, after)
        pairs = {name: pair_of(name, kernels) for name in units}
        found = {}
        # Those on top of A are the first.
        for name, below in sorted(pairs.items(), key=lambda pair: _order(pair[1])):
            if below is None:
                continue
            more = kernels[below | {name}]
            is_whole = kernels[below] is before and more is after
            effects = whole if is_whole else await self._between(kernels[below], more)
            found[name] = tuple(sorted(below)), effects
        mismatches = self._unlike(before, after, cpu) if cpu else ()
        return FoundPairs(whole, found, mismatches, tuple(self._notes))

    async def _between(self, base: MeasuredKernel, other: MeasuredKernel) -> MeasuredPair:
        ours, theirs = base.sides(), other.sides()
        cycles: dict[str, PlacementEffect] = {}
        further: dict[str, MeasuredEffects] = {}
        for workload in (name for name in ours if name in theirs):
            sides = ours[workload], theirs[workload]
            pair = RunPair(*sides, compare(sides[0].counts, sides[1].counts))
            every = await measured(self._measures, self._lab, pair)
            for measure, judged in zip(self._measures, every, strict=True):
                if judged is None:
                    continue
                if found := cycles_of([judged]):
                    cycles |= self._cycles(found, workload, base)
                else:
                    known = further.get(measure.name, measure.found())
                    effects = (*known.effects, *self._named(judged, workload, base))
                    further[measure.name] = msgspec.structs.replace(known, effects=effects)
                    self._notes.update(dict.fromkeys(judged.found.notes))
        return MeasuredPair(cycles, tuple(further.values()))

    def _cycles(
        self, cycles: Cycles, workload: str, base: MeasuredKernel
    ) -> dict[str, PlacementEffect]:
        self._notes.update(dict.fromkeys(cycles.notes))
        named = {self._bench.named(one.region, workload): one for one in cycles.effects}
        return {
            name: msgspec.structs.replace(one, region=name)
            for name, one in named.items()
            if name in base.regions
        }

    def _named(self, judged: Judgement, workload: str, base: MeasuredKernel) -> list[Effect]:
        named = [
            msgspec.structs.replace(one, region=self._bench.named(one.region, workload))
            for one in judged.found.effects
        ]
        return [one for one in named if one.region in base.regions]

    def _unlike(
        self, before: MeasuredKernel, after: MeasuredKernel, cpu: CPU
    ) -> tuple[Mismatch, ...]:
        """Return what A or B did otherwise than on the CPU; what both did, once."""
        return merged_unlike(
            msgspec.structs.replace(
                one, regions=tuple(self._bench.named(region, workload) for region in one.regions)
            )
            for who, end in (("A", before), ("B", after))
            for workload, side in end.sides().items()
            for one in unlike(cpu, side.done[0], self._lab.store, who)
        )


def pair_of(unit: str, kernels: Kernels) -> FlipSet | None:
    """Return the option groups that are flipped in both of two kernels which differ by this one
    alone, as few as there can be; None without such kernels.
    """
    below = [flips for flips in kernels if unit not in flips and flips | {unit} in kernels]
    return min(below, key=_order, default=None)


def _order(flips: FlipSet | None) -> tuple[int, list[str]]:
    return len(flips or ()), sorted(flips or ())
