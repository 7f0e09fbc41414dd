# SPDX-License-Identifier: GPL-2.0-or-later
"""What measures besides the path say of kernels that an ablation measured: A to B, and each option
group that two of them show.

Nothing is built for it. An option group whose effect was inferred from kernels with other option
groups flipped as well has a path effect only.
"""

from collections.abc import Mapping, Sequence

import msgspec

from kdelta.cpus.model import CPU
from kdelta.infer.search.search_model import FlipSet
from kdelta.lab.lab import Lab
from kdelta.lab.reports import merged_unlike, unlike
from kdelta.measures.model import Measure
from kdelta.report.model import Mismatch
from kdelta.studies.search.measure import Bench, MeasuredKernel
from kdelta.studies.search.pairs import MeasuredPair, PairJudge, pairs_of

WHOLE = "A to B"

Kernels = Mapping[FlipSet, MeasuredKernel]
"""A, B, and what ran well between them, by the option groups that are flipped."""


class FoundPairs(msgspec.Struct, frozen=True):
    """Effects from A to B, and of each option group that they are known of: the option groups that
    are flipped in both kernels, and the pair. What A or B did otherwise than on the CPU; and what
    is to be known about effects.
    """

    whole: MeasuredPair
    groups: dict[str, tuple[tuple[str, ...], MeasuredPair]]
    mismatches: tuple[Mismatch, ...] = ()
    notes: tuple[str, ...] = ()


class PairStudy:
    """Judges pairs of kernels by all measures of a request."""

    def __init__(self, measures: Sequence[Measure], bench: Bench, lab: Lab) -> None:
        self._judge = PairJudge(measures, lab, bench.named)
        self._bench = bench
        self._store = lab.store

    async def find(self, kernels: Kernels, units: Sequence[str], cpu: CPU | None) -> FoundPairs:
        """Return all that these kernels show; option groups: all of them, so that B is where they
        are flipped. cpu: the one that was named.
        """
        before, after = kernels[frozenset()], kernels[frozenset(units)]
        whole = await self._between(WHOLE, before, after)
        pairs = {name: pair_of(name, kernels) for name in units}
        found = {}
        # Those on top of A are the first.
        for name, below in sorted(pairs.items(), key=lambda pair: _order(pair[1])):
            if below is None:
                continue
            effects = await self._between(name, kernels[below], kernels[below | {name}])
            found[name] = tuple(sorted(below)), effects
        mismatches = self._unlike(before, after, cpu) if cpu else ()
        return FoundPairs(whole, found, mismatches, self._judge.judged.notes)

    async def _between(
        self, name: str, base: MeasuredKernel, other: MeasuredKernel
    ) -> MeasuredPair:
        return await self._judge.ask(name, pairs_of(base.sides(), other.sides()), base.regions)

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
            for one in unlike(cpu, side.done[0], self._store, who)
        )


def pair_of(unit: str, kernels: Kernels) -> FlipSet | None:
    """Return the option groups that are flipped in both of two kernels which differ by this one
    alone, as few as there can be; None without such kernels.
    """
    below = [flips for flips in kernels if unit not in flips and flips | {unit} in kernels]
    return min(below, key=_order, default=None)


def _order(flips: FlipSet | None) -> tuple[int, list[str]]:
    return len(flips or ()), sorted(flips or ())
