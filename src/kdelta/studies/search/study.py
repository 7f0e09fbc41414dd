# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernels of a search, whatever it flips: both ends, what is between them, and more runs of
those of which few leave a difference to chance.
"""

from collections.abc import Mapping, Sequence

import msgspec

from kdelta.cpus.model import CPU
from kdelta.host.interrupt import interruptible
from kdelta.infer.effects.estimate import effect_between, is_seen
from kdelta.infer.search.search_model import NOTHING, FlipSet, S
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
        self._rerun: set[FlipSet] = set()

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
        """Return the search with more runs of the kernels that leave differences to chance."""
        while doubted := self._doubted(search):
            search = search.observe(doubted[0], (await self.more_runs(doubted[0])).outcome)
        return search

    @interruptible()
    def _doubted(self, search: S) -> list[FlipSet]:
        return sorted(search.doubted - self._rerun, key=sorted)

    async def more_runs(self, flips: FlipSet) -> MeasuredKernel:
        """Return a measured kernel with as many runs as leave nothing to chance."""
        self._rerun.add(flips)
        self._measured[flips] = await self._bench.more_runs(self._measured[flips])
        return self._measured[flips]

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

    async def proof_again(self, proof: MeasuredKernel, runs: int) -> MeasuredKernel | None:
        """Return the proof's kernel with so many runs, as the second end then has, if they differ
        with fewer: the spread of a few runs is itself uncertain.
        """
        end = self.ends[1]
        if proof.failure or runs <= self._bench.runs:
            return None
        common = end.code.keys() & proof.code.keys()
        if not any(is_seen(effect_between(end.code[name], proof.code[name])) for name in common):
            return None
        self._bench.log(f"the proof does not hold with so few runs: {runs} of both ends")
        again = [await self._bench.measure(one.label, one.found, runs=runs) for one in (end, proof)]
        if any(one.failure for one in again):
            return None
        self._measured[self._last] = again[0]
        return again[1]
