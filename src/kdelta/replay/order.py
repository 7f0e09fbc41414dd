# SPDX-License-Identifier: GPL-2.0-or-later
"""A better order of functions for one or several regions on a CPU; the replay is the judge."""

from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.cpus.model import CPU, Cache, MissKind
from kdelta.replay.anneal import anneal
from kdelta.replay.bound import least_misses
from kdelta.replay.clusters import PAGE_BYTES, by_density, by_first_use, c3
from kdelta.replay.functions import Placement
from kdelta.replay.judge import OWN, REPLAYED, Case, CaseJudge, Misses, shortened, weights_of
from kdelta.replay.layouts import as_linked, ordered, shuffles
from kdelta.replay.transitions import transitions
from kdelta.replay.units import Units, units_of
from kdelta.spec.errors import UserError

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

SHIPPED = "shipped"
HOT_APART = "hot apart"
FIRST_USE = "first use"
DENSITY = "density"
C3 = "c3"
C3_LARGE = "c3, large pages"
ANNEALED = "annealed"

DEFAULT_EVALUATIONS = 3000
DEFAULT_LAYOUTS = 128

_SEARCHED: tuple[MissKind, ...] = ("l1i", "itlb")


class Draws(msgspec.Struct, frozen=True):
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
    used): the rest of the misses are collisions. bound: kind -> what no order can be below.
    truncated: the trace is not all of the region.
    """

    region: str
    weight: float
    iterations: int
    insns: int
    methods: dict[str, dict[MissKind, int]]
    ensemble: dict[MissKind, Draws]
    associative: dict[MissKind, int]
    bound: dict[MissKind, int]
    truncated: bool


class PlaceResult(msgspec.Struct, frozen=True):
    """The best order that was found.

    order: names for an ordering file: all executed functions that can move; none if the method is
    SHIPPED, since then nothing is better than the layout that there is. costs: of each method, the
    weighted mean over regions of what misses cost, exposed, as a fraction of what the instructions
    cost; ensemble: the same of random layouts. searched: kinds of misses that the search looked at,
    judged: those of the costs. evaluations: orders that were judged in the search.
    """

    cpu: str
    method: str
    order: tuple[str, ...]
    costs: dict[str, float]
    ensemble: Draws
    regions: tuple[RegionOrder, ...]
    judged: tuple[MissKind, ...]
    searched: tuple[MissKind, ...]
    seed: int
    evaluations: int

    def payers(self, against: str = SHIPPED) -> tuple[tuple[str, MissKind], ...]:
        """Regions and kinds of misses of which the chosen order has more than another method."""
        return tuple(
            (row.region, kind)
            for row in self.regions
            for kind in self.judged
            if row.methods[self.method][kind] > row.methods[against][kind]
        )


def place(
    placement: Placement,
    cases: Sequence[Case],
    cpu: CPU,
    *,
    seed: int = 1,
    evaluations: int = DEFAULT_EVALUATIONS,
    layouts: int = DEFAULT_LAYOUTS,
    watch: Callable[[int], None] | None = None,
) -> PlaceResult:
    """An order of the executed functions that costs the least, of all that were tried.

    placement: of the traces of these cases, in their order. evaluations: the most orders that the
    search judges. layouts: of the ensemble. The result depends on these, on the seed, and on
    nothing else. It is never worse than any rule of thumb, or than what was shipped, by the replay
    of the whole traces. watch: is told now and then how many orders have been judged.
    UserError if nothing that was executed can move, or if all weights are 0.
    """
    if len(cases) != len(placement.placed):
        raise ValueError(f"{len(cases)} cases, and a placement of {len(placement.placed)} traces")
    units = units_of(placement)
    _require_something(units, cases)
    kinds = _kinds(cpu)
    judge = CaseJudge(cases, units, cpu, kinds)
    orders = _rules_of_thumb(placement, cases, units, cpu)
    searched = _varying(judge.misses(units.layouts(list(orders.values()))))
    search = CaseJudge(
        [shortened(case) for case in cases], units, cpu, {kind: kinds[kind] for kind in searched}
    )
    start = _cheapest(search, list(orders.values()))
    found = anneal(
        search.judge, start, units.bytes, seed=seed, evaluations=evaluations, watch=watch
    )
    names = {method: units.order(order) for method, order in orders.items()}
    names[ANNEALED] = units.order(found.order)
    drawn = judge.misses(shuffles(placement, layouts, seed)[:, units.functions])
    table = _tabled(placement, units, judge, names, drawn)
    method = min(table.costs, key=lambda method: table.costs[method])
    return PlaceResult(
        cpu=cpu.name,
        method=method,
        order=names.get(method, ()),
        costs=table.costs,
        ensemble=_draws(judge.costs(drawn)),
        regions=_rows(placement, cases, table, judge.associative(table.layouts[method]), kinds),
        judged=tuple(kinds),
        searched=searched,
        seed=seed,
        evaluations=found.evaluations,
    )


def _kinds(cpu: CPU) -> dict[MissKind, Cache]:
    """What the code alone can miss in."""
    found: dict[MissKind, Cache] = {"l1i": cpu.l1i, "itlb": cpu.itlb}
    return {**found, "btb": cpu.btb} if cpu.btb else found


def _require_something(units: Units, cases: Sequence[Case]) -> None:
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
    placement: Placement, cases: Sequence[Case], units: Units, cpu: CPU
) -> dict[str, I64]:
    """By method, the orders of the units that need no search."""
    traces = [case.trace for case in cases]
    graph = transitions(traces, placement, units.of_function, weights_of(cases).tolist())
    found = {
        HOT_APART: np.arange(len(units.names)),
        FIRST_USE: by_first_use(graph, len(units.names)),
        DENSITY: by_density(graph, units.bytes),
        C3: c3(graph, units.bytes, PAGE_BYTES),
    }
    if cpu.itlb.line_bytes > PAGE_BYTES:
        found[C3_LARGE] = c3(graph, units.bytes, cpu.itlb.line_bytes)
    return found


def _cheapest(judge: CaseJudge, orders: Sequence[I64]) -> I64:
    return orders[int(np.argmin(judge.judge(orders).costs))]


def _varying(misses: Misses) -> tuple[MissKind, ...]:
    """What is worth a search: misses of L1I, and others if any two orders differ in them."""
    first, *others = _SEARCHED
    return (first, *(kind for kind in others if np.ptp(misses[kind], axis=1).any()))


class _Table(msgspec.Struct, frozen=True, eq=False):
    """All that was replayed: by method its layout of `units.small`, its misses and their cost; and
    the misses of the ensemble.
    """

    layouts: dict[str, U64]
    misses: dict[str, Misses]
    costs: dict[str, float]
    drawn: Misses


def _tabled(
    placement: Placement,
    units: Units,
    judge: CaseJudge,
    names: Mapping[str, tuple[str, ...]],
    drawn: Misses,
) -> _Table:
    layouts = {SHIPPED: as_linked(placement)[units.functions]}
    for method, order in names.items():
        layouts[method] = ordered(placement, order)[0][units.functions]
    misses = {method: judge.misses(layout[np.newaxis]) for method, layout in layouts.items()}
    costs = {method: float(judge.costs(found)[0]) for method, found in misses.items()}
    return _Table(layouts, misses, costs, drawn)


def _rows(
    placement: Placement,
    cases: Sequence[Case],
    table: _Table,
    associative: dict[MissKind, I64],
    kinds: Mapping[MissKind, Cache],
) -> tuple[RegionOrder, ...]:
    return tuple(
        RegionOrder(
            region=case.trace.region,
            weight=case.weight,
            iterations=case.trace.iterations,
            insns=case.trace.executed_insns(OWN),
            methods={
                method: {kind: int(counts[index, 0]) for kind, counts in found.items()}
                for method, found in table.misses.items()
            },
            ensemble={kind: _draws(counts[index]) for kind, counts in table.drawn.items()},
            associative={kind: int(counts[index]) for kind, counts in associative.items()},
            bound=_bounds(placement, index, case, kinds),
            truncated=case.trace.truncated,
        )
        for index, case in enumerate(cases)
    )


def _bounds(
    placement: Placement, index: int, case: Case, kinds: Mapping[MissKind, Cache]
) -> dict[MissKind, int]:
    """Of what is a line or a page; nothing is known of branches."""
    return {
        kind: least_misses(case.trace, placement.placed[index], placement, cache)
        for kind, cache in kinds.items()
        if REPLAYED[kind] != "branches"
    }


def _draws(counts: npt.NDArray[np.float64] | I64) -> Draws:
    least, quarter, median, three_quarters, most = np.quantile(counts, (0, 0.25, 0.5, 0.75, 1))
    return Draws(float(least), float(quarter), float(median), float(three_quarters), float(most))
