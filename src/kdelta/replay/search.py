# SPDX-License-Identifier: GPL-2.0-or-later
"""The search for an order from several starts: each is tried for a while, the best to the end."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from kdelta.counts.arrays import I64
from kdelta.cpus.model import CPU, Cache, MissKind
from kdelta.replay.anneal import BestOrder, Watch, anneal
from kdelta.replay.judge import CaseJudge, WeightedRegion, shortened
from kdelta.replay.units import Units

_TRIED_SHARE = 0.25


class Start(msgspec.Struct, frozen=True, eq=False):
    """An order of units, of which some may only fill."""

    units: Units
    order: I64


class Best(msgspec.Struct, frozen=True, eq=False):
    """The best order that was found, and how many were judged for it."""

    units: Units
    order: I64
    evaluations: int


class _Candidate:
    """A start, and what has come of it."""

    def __init__(self, start: Start, judge: CaseJudge) -> None:
        self.units, self.order = start.units, start.order
        self.cost = np.inf
        self._judge = judge

    def anneal(self, seed: int, evaluations: int, watch: Watch) -> BestOrder:
        found = anneal(
            self._judge.judge,
            self.order,
            self.units.bytes,
            seed=seed,
            evaluations=evaluations,
            watch=watch,
        )
        self.order, self.cost = found.order, found.cost
        return found


def search(
    starts: Sequence[Start],
    cases: Sequence[WeightedRegion],
    cpu: CPU,
    kinds: Mapping[MissKind, Cache],
    *,
    seed: int,
    evaluations: int,
    watch: Watch | None = None,
) -> Best:
    """Anneals each start with a quarter of the evaluations, then goes on with the cheapest of what
    came of it, the first of equals. With one start there is nothing to choose. At most
    `evaluations` orders are judged, but one for each start.
    """
    short = [shortened(case) for case in cases]
    found = [_Candidate(start, CaseJudge(short, start.units, cpu, kinds)) for start in starts]
    used = 0

    def told(more: int, cost: float) -> None:
        if watch:
            watch(used + more, min(cost, *(one.cost for one in found)))

    for candidate in found if len(found) > 1 else ():
        used += candidate.anneal(seed, int(evaluations * _TRIED_SHARE), told).evaluations
    best = min(found, key=lambda candidate: candidate.cost)
    if len(found) == 1 or (best.cost > 0 and used < evaluations):
        used += best.anneal(seed, evaluations - used, told).evaluations
    return Best(best.units, best.order, used)
