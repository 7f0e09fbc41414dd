# SPDX-License-Identifier: GPL-2.0-or-later
"""What layouts and orders cost several regions together, by the replay; and the search for an order
from several starts: each is tried for a while, the best to the end.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from kdelta.counts.arrays import F64, I64, U64
from kdelta.counts.trace import Trace
from kdelta.cpus.model import CPU, Cache, MissKind
from kdelta.replay.anneal import BestOrder, OrderCosts, Watch, anneal
from kdelta.replay.simulate import Kind, PreparedTrace
from kdelta.replay.units import Units

OWN = 0

REPLAYED: dict[MissKind, Kind] = {"l1i": "lines", "itlb": "pages", "btb": "branches"}
"""The kinds of misses that code alone has, and how they are replayed."""

Misses = dict[str, I64]
"""By kind, misses of each region's own work under each layout: (n_regions, n_layouts)."""

_MOST_EXECUTED = 1 << 18
_WINDOW = 1 << 14
_TRIED_SHARE = 0.25


class WeightedRegion(msgspec.Struct, frozen=True, eq=False):
    """A region, and how much it counts; with a weight of 0 it is only shown."""

    trace: Trace
    weight: float = 1.0


class CaseJudge:
    """Judges layouts of `units.small` for all cases, by these kinds of misses.

    The cost of a layout is the weighted mean over regions of what their misses cost, fully exposed,
    as a fraction of what their instructions cost at the CPU's base rate. So a region counts by its
    weight, however long it is.
    """

    def __init__(
        self,
        cases: Sequence[WeightedRegion],
        units: Units,
        cpu: CPU,
        kinds: Mapping[MissKind, Cache],
    ) -> None:
        self._units = units
        self._kinds = dict(kinds)
        self._prepared = [
            PreparedTrace(case.trace, placed)
            for case, placed in zip(cases, units.small.placed, strict=True)
        ]
        unit_of = units.of_function[units.functions]
        moves = np.flatnonzero(unit_of >= 0)
        self._by_order = moves[np.argsort(unit_of[moves], kind="stable")]
        self._begins = np.flatnonzero(np.diff(unit_of[self._by_order], prepend=-1))
        self._prices = {str(kind): price.exposed for kind, price in cpu.misses.items()}
        self._weights = cycle_weights(cases) / cpu.cycles_per_insn

    def misses(self, layouts: U64, kinds: Iterable[MissKind] | None = None) -> Misses:
        """The misses of each region's own work under each layout, of these kinds or of all."""
        return {
            kind: np.stack(
                [_own(prepared, layouts, self._kinds[kind], kind) for prepared in self._prepared]
            )
            for kind in (self._kinds if kinds is None else kinds)
        }

    def costs(self, misses: Misses) -> F64:
        """What the layouts of these misses cost, (n_layouts,); a kind without a price is free."""
        found = np.zeros(next(iter(misses.values())).shape[1])
        for kind, counts in misses.items():
            found += self._prices.get(kind, 0.0) * (self._weights @ counts)
        return found

    def judge(self, orders: Sequence[I64]) -> OrderCosts:
        """What orders of the units cost, and which units miss."""
        layouts = self._units.layouts(orders)
        costs, blame = np.zeros(len(orders)), np.zeros(layouts.shape)
        for prepared, weight in zip(self._prepared, self._weights.tolist(), strict=True):
            for kind, cache in self._kinds.items() if weight else ():
                found = prepared.replay(layouts, cache, kind=REPLAYED[kind])
                price = weight * self._prices[kind]
                costs += price * found.total[:, OWN]
                if found.by_function is not None:
                    blame += price * found.by_function
        return OrderCosts(costs, self._by_unit(blame))

    def blame(self, layout: U64, cache: Cache) -> F64:
        """What each unit's misses of lines cost in another cache under one layout, (n_units,)."""
        found = np.zeros((1, len(layout)))
        for prepared, weight in zip(self._prepared, self._weights.tolist(), strict=True):
            misses = prepared.replay(layout[np.newaxis], cache) if weight else None
            if misses is not None and misses.by_function is not None:
                found += weight * misses.by_function
        blame: F64 = self._by_unit(found)[0]
        return blame

    def associative(self, layout: U64) -> dict[MissKind, I64]:
        """The misses of each region, (n_regions,), under one layout if lines could lie anywhere in
        a cache of the same size. What branches go to is not in it."""
        return {
            kind: np.concatenate(
                [
                    _own(prepared, layout[np.newaxis], cache.fully_associative, kind)
                    for prepared in self._prepared
                ]
            )
            for kind, cache in self._kinds.items()
            if REPLAYED[kind] != "branches"
        }

    def _by_unit(self, by_function: F64) -> F64:
        """Sums over the functions of each unit; misses of what stays are counted for no unit."""
        return np.add.reduceat(by_function[:, self._by_order], self._begins, axis=1)


def _own(prepared: PreparedTrace, layouts: U64, cache: Cache, kind: MissKind) -> I64:
    found = prepared.replay(layouts, cache, kind=REPLAYED[kind], by_function=False)
    return found.total[:, OWN].astype(np.int64)


def cycle_weights(cases: Sequence[WeightedRegion]) -> F64:
    """What one cycle of each region counts, (n_cases,): so that all weights are 1 together, and
    each region's instructions are all of it."""
    weights = np.array([case.weight for case in cases], dtype=np.float64)
    insns = np.array([case.trace.executed_insns(OWN) for case in cases], dtype=np.float64)
    shares = weights / weights.sum()
    found: F64 = np.divide(shares, insns, out=np.zeros_like(shares), where=insns > 0)
    return found


def sampled_case(case: WeightedRegion) -> WeightedRegion:
    """The case with so much of its trace that it can be replayed thousands of times: windows of it,
    at equal distances. Most traces are short enough as they are."""
    trace = case.trace
    n_executed = len(trace.sequence)
    if n_executed <= _MOST_EXECUTED:
        return case
    begins = np.linspace(0, n_executed - _WINDOW, _MOST_EXECUTED // _WINDOW).astype(np.int64)
    kept = (begins[:, np.newaxis] + np.arange(_WINDOW)).ravel()
    short = msgspec.structs.replace(
        trace, sequence=trace.sequence[kept], contexts=trace.contexts[kept]
    )
    return WeightedRegion(short, case.weight)


class Start(msgspec.Struct, frozen=True, eq=False):
    """An order of units, of which some may only fill."""

    units: Units
    order: I64


class Best(msgspec.Struct, frozen=True, eq=False):
    """The best order that was found, and how many were judged for it."""

    units: Units
    order: I64
    evaluations: int


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
    short = [sampled_case(case) for case in cases]
    judges = [CaseJudge(short, start.units, cpu, kinds) for start in starts]
    found = [BestOrder(start.order, np.inf, 0) for start in starts]
    used = 0

    def told(more: int, cost: float) -> None:
        if watch:
            watch(used + more, min(cost, *(one.cost for one in found)))

    def go_on(at: int, evaluations: int) -> int:
        """Anneals one of them; returns how many orders were judged for it."""
        found[at] = anneal(
            judges[at].judge,
            found[at].order,
            starts[at].units.bytes,
            seed=seed,
            evaluations=evaluations,
            watch=told,
        )
        return found[at].evaluations

    for at in range(len(starts)) if len(starts) > 1 else ():
        used += go_on(at, int(evaluations * _TRIED_SHARE))
    best = min(range(len(starts)), key=lambda at: found[at].cost)
    if len(starts) == 1 or (found[best].cost > 0 and used < evaluations):
        used += go_on(best, evaluations - used)
    return Best(starts[best].units, found[best].order, used)
