# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernels of a search, whatever it flips: both ends, what is between them, and what compare
says of those that the answer stands on.
"""

from collections.abc import Mapping, Sequence

import msgspec

from kdelta.cpus.model import CPU
from kdelta.host.interrupt import interruptible
from kdelta.infer.search.search_model import NOTHING, FlipSet, JudgedPath, Pair, S
from kdelta.lab.lab import Lab
from kdelta.measures.model import Measure
from kdelta.studies.search.measure import Bench, Ends, MeasuredKernel
from kdelta.studies.search.pairs import JudgedChanges, PairJudge, pairs_of


class SearchStudy:
    """What was measured, by what is flipped: in the first end `_first`, in the second `_last`."""

    def __init__(self, bench: Bench, last: FlipSet = NOTHING, first: FlipSet = NOTHING) -> None:
        self._bench = bench
        self._first, self._last = first, last
        self._measured: dict[FlipSet, MeasuredKernel] = {}

    @property
    def ends(self) -> Ends:
        """Return both ends, once they are measured."""
        return self._measured[self._first], self._measured[self._last]

    def comparable(self, cpu: CPU | None = None, measures: Sequence[Measure] = ()) -> Ends:
        """Return both ends, and from now on have all kernels, without regions that a path decides
        which one of the ends has lost in the guest.
        """
        kept = self._bench.comparable(self.ends, cpu, measures)
        self._measured |= zip((self._first, self._last), kept, strict=True)
        return kept

    async def settled(self, search: S) -> S:
        """Return the search with what compare says of the kernels that its answer stands on."""
        while doubted := self._doubted(search):
            one, other = doubted[0]
            await self.compared(one, other)
            search = search.observe(other, self._measured[other].outcome)
        return search

    @interruptible()
    def _doubted(self, search: S) -> list[Pair]:
        return sorted(search.doubted, key=lambda pair: [sorted(one) for one in pair])

    async def compared(self, one: FlipSet, other: FlipSet) -> dict[str, JudgedPath]:
        """Return what compare says of the second of two measured kernels, by region; it is kept."""
        kernel = self._measured[other]
        if one not in kernel.judged:
            found = await self._bench.compared(self._measured[one], kernel)
            kernel = msgspec.structs.replace(kernel, judged={**kernel.judged, one: found})
            self._measured[other] = kernel
        return kernel.judged[one]

    async def judged(
        self,
        lab: Lab,
        measures: Sequence[Measure],
        changes: Mapping[str, tuple[FlipSet, FlipSet]],
        known: Sequence[Measure] = (),
    ) -> JudgedChanges:
        """Return what measures say of each of these changes: the kernel without it, and with it.
        known: measures that kernels were searched by, whose judgement these are given.
        """
        judge = PairJudge(measures, lab, self._bench.named)
        for measure in measures:
            measure.expect(lab.progress, len(set(changes.values())))
        for name, pair in changes.items() if measures else ():
            base, other = (self._measured[flips] for flips in pair)
            pairs = pairs_of(base.sides(), other.sides())
            for workload, one in pairs.items():
                found = tuple(filter(None, (measure.judge(lab, one) for measure in known)))
                pairs[workload] = msgspec.structs.replace(one, judged=found)
            await judge.ask(name, pairs, base.regions)
        return judge.judged
