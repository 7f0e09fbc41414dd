# SPDX-License-Identifier: GPL-2.0-or-later
"""A better order of functions for one or several regions on a CPU; the replay is the judge."""

from collections.abc import Callable, Iterable, Sequence

import msgspec
import numpy as np

from kdelta.counts.arrays import F64, I64, U64
from kdelta.cpus.model import CPU, Cache, MissKind
from kdelta.replay.anneal import Watch
from kdelta.replay.functions import Placement
from kdelta.replay.layouts import as_linked, at_borders, draws_of, in_text, ordered, shuffles
from kdelta.replay.search import (
    OWN,
    CaseJudge,
    Misses,
    Start,
    WeightedRegion,
    cycle_weights,
    search,
)
from kdelta.replay.sets_apart import sets_apart
from kdelta.replay.transitions import PAGE_BYTES, by_density, by_first_use, c3, transitions
from kdelta.replay.units import Units, units_of
from kdelta.spec.errors import UserError

SHIPPED = "shipped"
HOT_APART = "hot apart"
FIRST_USE = "first use"
DENSITY = "density"
C3 = "c3"
C3_LARGE = "c3, large pages"
SETS_APART = "sets apart"
ANNEALED = "annealed"

DEFAULT_EVALUATIONS = 4000
DEFAULT_LAYOUTS = 128

Further = Callable[[U64], Misses]
"""What the misses are of kinds that no search looks at, under layouts (n_layouts, n_functions)."""

_SEARCHED: tuple[MissKind, ...] = ("l1i", "itlb")


class RandomOrders(msgspec.Struct, frozen=True):
    """What an ensemble of random layouts has."""

    least: float
    quarter: float
    median: float
    three_quarters: float
    most: float


class RegionOrder(msgspec.Struct, frozen=True):
    """What orders are predicted to do to one region: misses of its own work, in all iterations.

    weight: as given. insns: of its own work. methods: method -> kind -> misses, SHIPPED among them.
    ensemble: kind -> misses of random layouts. associative: kind -> misses of the chosen order if
    lines could lie anywhere in a cache of the same size (still evicting what was least recently
    used): the rest of the misses are collisions.
    """

    region: str
    weight: float
    iterations: int
    insns: int
    methods: dict[str, dict[str, int]]
    ensemble: dict[str, RandomOrders]
    associative: dict[str, int]


class PlaceResult(msgspec.Struct, frozen=True):
    """The best order that was found.

    order: names for an ordering file: all executed functions that can move; none if the method is
    SHIPPED, since then nothing is better than the layout that there is. padding: names in it of
    functions that are never executed, which only fill the places between others. costs: of each
    method, the weighted mean over regions of what misses cost, exposed, as a fraction of what the
    instructions cost; ensemble: the same of random layouts. searched: kinds of misses that the
    search looked at, judged: those of the costs. evaluations: orders that were judged in the
    search.
    """

    cpu: str
    method: str
    order: tuple[str, ...]
    padding: tuple[str, ...]
    costs: dict[str, float]
    ensemble: RandomOrders
    regions: tuple[RegionOrder, ...]
    judged: tuple[str, ...]
    searched: tuple[MissKind, ...]
    seed: int
    evaluations: int

    def payers(self, against: str = SHIPPED) -> tuple[tuple[str, str], ...]:
        """Return regions and kinds of misses of which the chosen order has more than another
        method.
        """
        return tuple(
            (row.region, kind)
            for row in self.regions
            for kind in self.judged
            if row.methods[self.method][kind] > row.methods[against][kind]
        )


def place_in_order(
    placement: Placement,
    cases: Sequence[WeightedRegion],
    cpu: CPU,
    *,
    seed: int = 1,
    evaluations: int = DEFAULT_EVALUATIONS,
    layouts: int = DEFAULT_LAYOUTS,
    watch: Watch | None = None,
    further: Further | None = None,
) -> PlaceResult:
    """An order of the executed functions that costs the least, of all that were tried.

    placement: of the traces of these cases, in their order. evaluations: the most orders that the
    search judges. layouts: of the ensemble. The result depends on these, on the seed, and on
    nothing else. It is never worse than any rule of thumb, or than what was linked, by the replay
    of the whole traces. watch: is called with how far the search is. further: more kinds of
    misses, which count, by their prices, where a search begins and where one of the methods is
    chosen. UserError if nothing that was executed can move, or if all weights are 0.
    """
    if len(cases) != len(placement.placed):
        raise ValueError(f"{len(cases)} cases, and a placement of {len(placement.placed)} traces")
    units, kinds = units_of(placement), _kinds(cpu)
    _require_something(units, cases)
    table = _MethodTable(placement, units, CaseJudge(cases, units, cpu, kinds))
    rules = _rules_of_thumb(placement, cases, units, cpu)
    table.add_all(units, rules)
    apart = sets_apart(placement, units, table.judge, rules[FIRST_USE], cpu.l1i)
    if apart:
        table.add(SETS_APART, apart.units.order(apart.order.tolist()))
    if further:
        table.look_further(further)
    starts = [Start(units, rules[table.cheapest(rules)])]
    # A search never finds out what these sets cost in a cache that it does not look at.
    if apart and (not further or table.cheapest([*rules, SETS_APART]) == SETS_APART):
        starts.append(apart)
    searched = table.varying()
    search_kinds = {kind: kinds[kind] for kind in searched}
    found = search(
        starts, cases, cpu, search_kinds, seed=seed, evaluations=evaluations, watch=watch
    )
    table.add(ANNEALED, found.units.order(found.order.tolist()))
    table.draw(layouts, seed, cpu.itlb)
    if further:
        table.look_further(further)
    method, executed = table.cheapest(table.costs), set(units.order(range(units.executed)))
    return PlaceResult(
        cpu=cpu.name,
        method=method,
        order=table.names[method],
        padding=tuple(name for name in table.names[method] if name not in executed),
        costs=table.costs,
        ensemble=_draws(table.judge.costs(table.drawn)),
        regions=table.rows(cases, method),
        judged=tuple(kind for kind in table.drawn if kind in cpu.misses),
        searched=searched,
        seed=seed,
        evaluations=found.evaluations,
    )


def _kinds(cpu: CPU) -> dict[MissKind, Cache]:
    """What the code alone can miss in."""
    found: dict[MissKind, Cache] = {"l1i": cpu.l1i, "itlb": cpu.itlb}
    return {**found, "btb": cpu.btb} if cpu.btb else found


def _require_something(units: Units, cases: Sequence[WeightedRegion]) -> None:
    if not units.names:
        raise UserError(
            "nothing that was executed can be moved by a relink",
            "take a workload that runs in the kernel's .text: modules and user programs stay",
        )
    if any(case.weight < 0 for case in cases) or not any(case.weight > 0 for case in cases):
        raise UserError(
            "no region counts: all weights are 0, or one is below",
            "give weights of at least 0, and one region more than that",
        )


def _rules_of_thumb(
    placement: Placement, cases: Sequence[WeightedRegion], units: Units, cpu: CPU
) -> dict[str, I64]:
    """By method, the orders of the units that need no search."""
    traces = [case.trace for case in cases]
    graph = transitions(traces, placement, units.of_function, cycle_weights(cases).tolist())
    found = {
        HOT_APART: np.arange(len(units.names)),
        FIRST_USE: by_first_use(graph, len(units.names)),
        DENSITY: by_density(graph, units.bytes),
        C3: c3(graph, units.bytes, PAGE_BYTES),
    }
    if cpu.itlb.line_bytes > PAGE_BYTES:
        found[C3_LARGE] = c3(graph, units.bytes, cpu.itlb.line_bytes)
    return found


class _MethodTable:
    """What is replayed: by method its names, its misses and what these cost; and an ensemble."""

    def __init__(self, placement: Placement, units: Units, judge: CaseJudge) -> None:
        self._placement, self._units, self.judge = placement, units, judge
        self._layouts = {SHIPPED: as_linked(placement)}
        self._misses = {SHIPPED: judge.misses(self._small(SHIPPED)[np.newaxis])}
        self.costs = {SHIPPED: float(judge.costs(self._misses[SHIPPED])[0])}
        self.names: dict[str, tuple[str, ...]] = {SHIPPED: ()}
        self.drawn: Misses = {}
        self._drawn = np.zeros((0, len(placement.functions)), dtype=np.uint64)

    def add(self, method: str, names: tuple[str, ...]) -> None:
        """Replays the layout that an ordering file makes."""
        self.names[method], self._layouts[method] = names, ordered(self._placement, names)[0]
        misses = self.judge.misses(self._small(method)[np.newaxis])
        self._misses[method] = misses
        self.costs[method] = float(self.judge.costs(misses)[0])

    def add_all(self, units: Units, orders: dict[str, I64]) -> None:
        """Replay the layouts of orders of these units, by method."""
        for method, order in orders.items():
            self.add(method, units.order(order.tolist()))

    def draw(self, layouts: int, seed: int, tlb: Cache) -> None:
        """Replays random layouts; for pages, random borders in the order as linked."""
        self._drawn = shuffles(self._placement, layouts, seed)
        bordered = at_borders(
            [self._layouts[SHIPPED]], in_text(self._placement), draws_of(layouts, seed), tlb
        )
        functions = self._units.functions
        self.drawn = self.judge.misses(self._drawn[:, functions])
        self.drawn |= self.judge.misses(bordered[:, functions], ("itlb",))

    def look_further(self, further: Further) -> None:
        """Adds misses of more kinds, and what they cost."""
        methods = list(self._layouts)
        layouts = np.concatenate([np.stack(list(self._layouts.values())), self._drawn])
        for kind, counts in further(layouts).items():
            for at, method in enumerate(methods):
                self._misses[method][kind] = counts[:, at : at + 1]
            self.drawn[kind] = counts[:, len(methods) :]
        self.costs = {
            method: float(self.judge.costs(misses)[0]) for method, misses in self._misses.items()
        }

    def _small(self, method: str) -> U64:
        """The layout of a method, of those functions that the judge looks at."""
        layout: U64 = self._layouts[method][self._units.functions]
        return layout

    def cheapest(self, methods: Iterable[str]) -> str:
        """Of equals, the first."""
        return min(methods, key=lambda method: self.costs[method])

    def varying(self) -> tuple[MissKind, ...]:
        """What is worth a search: misses of L1I, and others if any two orders differ in them."""
        first, *others = _SEARCHED
        orders = [misses for method, misses in self._misses.items() if method != SHIPPED]
        return (
            first,
            *(k for k in others if np.ptp(np.hstack([found[k] for found in orders]), axis=1).any()),
        )

    def rows(self, cases: Sequence[WeightedRegion], chosen: str) -> tuple[RegionOrder, ...]:
        """One for each region."""
        associative = self.judge.associative(self._small(chosen))
        return tuple(
            RegionOrder(
                region=case.trace.region,
                weight=case.weight,
                iterations=case.trace.iterations,
                insns=case.trace.executed_insns(OWN),
                methods={
                    method: {kind: int(counts[index, 0]) for kind, counts in found.items()}
                    for method, found in self._misses.items()
                },
                ensemble={kind: _draws(counts[index]) for kind, counts in self.drawn.items()},
                associative={kind: int(counts[index]) for kind, counts in associative.items()},
            )
            for index, case in enumerate(cases)
        )


def _draws(counts: F64 | I64) -> RandomOrders:
    return RandomOrders(*np.quantile(counts, (0, 0.25, 0.5, 0.75, 1)).tolist())
