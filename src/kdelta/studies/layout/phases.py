# SPDX-License-Identifier: GPL-2.0-or-later
"""What the phases of a workload depend on where the linker put the code."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import msgspec
import numpy as np

from kdelta.counts.arrays import I64
from kdelta.counts.model import CONTEXTS, RegionCounts, merged_regions
from kdelta.counts.symbols import Symbol, code_table
from kdelta.cpus.model import CPU
from kdelta.host.command import quiet
from kdelta.infer.cycles.ensembles import Ensemble, Floats, RegionCost
from kdelta.infer.cycles.prices import INSNS, Prices, prices_of
from kdelta.infer.cycles.sensitivity import cycle_range, distribution
from kdelta.infer.effects.estimate import estimate
from kdelta.measures.cycles.placement import REPLAYED, Drawn, PlacedKernel, by_kind, caches_of
from kdelta.replay.phases import PhasedTrace
from kdelta.spec.phase import PhaseRule
from kdelta.studies.layout.model import LayoutPhase, LayoutRegion


def with_phases(
    placed: PlacedKernel,
    regions: Sequence[LayoutRegion],
    cpu: CPU,
    layouts: Drawn,
    *,
    rules: Sequence[PhaseRule],
    symbols: Sequence[Symbol],
    doing: Callable[[str], None] = quiet,
) -> tuple[LayoutRegion, ...]:
    """The regions with their phases, where any of their phases is ever called; symbols: of the
    kernel and its modules. doing: is called with each region.
    """
    by_name = {trace.region: index for index, trace in enumerate(placed.traces)}
    prices = prices_of(cpu)
    found = []
    for region in regions:
        doing(f"{region.name}: phases")
        phased = PhasedTrace(placed.traces[by_name[region.name]], symbols, rules)
        if phased.calls.any():
            one = _Phases(placed, by_name[region.name], phased, symbols)
            found.append(msgspec.structs.replace(region, phases=one.result(cpu, prices, layouts)))
        else:
            found.append(region)
    return tuple(found)


class _Phases:
    """Those of one region."""

    def __init__(
        self, placed: PlacedKernel, index: int, phased: PhasedTrace, symbols: Sequence[Symbol]
    ) -> None:
        self._placed, self._index, self._phased = placed, index, phased
        self._per = placed.iterations(index)
        trace = placed.traces[index]
        executed = (
            phased.executions(len(trace.addresses))
            * trace.insns.astype(np.int64)[:, np.newaxis, np.newaxis]
        )
        counts = merged_regions(placed.counts)[trace.region]
        self._specials = _specials(counts, trace.addresses, executed, symbols)

    def result(self, cpu: CPU, prices: Prices, layouts: Drawn) -> tuple[LayoutPhase, ...]:
        misses = self._misses(cpu, layouts)
        return tuple(
            self._one(number, name, {kind: row[:, number] for kind, row in misses.items()},
                      layouts.draws, prices)
            for number, name in enumerate(self._phased.names)
        )  # fmt: skip

    def _misses(self, cpu: CPU, layouts: Drawn) -> dict[str, Floats]:
        """By kind, an iteration: (1 + n_layouts, n_phases), the layout as linked first."""
        prepared = self._phased.prepared(self._placed.places[self._index])
        shipped = self._placed.shipped()[np.newaxis]
        every = by_kind(self._placed, layouts, cpu)
        found = {}
        for kind, cache in caches_of(cpu).items():
            both = np.concatenate([shipped, every[kind]])
            counts = prepared.replay(both, cache, kind=REPLAYED[kind])
            found[str(kind)] = counts.sum(axis=2) / self._per
        return found

    def _one(
        self,
        number: int,
        name: str,
        misses: dict[str, Floats],
        draws: tuple[int, ...],
        prices: Prices,
    ) -> LayoutPhase:
        per = Fraction(self._per)
        insns = Fraction(int(self._phased.insns[number].sum())) / per
        amounts = {INSNS: insns, **{k: n / per for k, n in self._specials[number].items()}}
        cost = RegionCost(
            executed={kind: estimate([amount]) for kind, amount in amounts.items()},
            ensemble=Ensemble(draws, {kind: row[1:] for kind, row in misses.items()}),
            shipped={kind: float(row[0]) for kind, row in misses.items()},
        )
        return LayoutPhase(
            name=name,
            calls=float(self._phased.calls[number]) / self._per,
            insns=float(insns),
            misses={
                kind: distribution(row, cost.shipped[kind])
                for kind, row in cost.ensemble.misses.items()
            },
            cycles=cycle_range(cost, prices),
        )


def _specials(
    counts: RegionCounts, addresses: np.ndarray[tuple[int], np.dtype[np.uint64]], executed: I64,
    symbols: Sequence[Symbol],
) -> list[dict[str, Fraction]]:  # fmt: skip
    """Of each phase, its special instructions by kind. They are known by function: each phase has
    them as it has the function's instructions, (n_blocks, n_phases, 3). Those of a function without
    a symbol are of the REST, the last.
    """
    table = code_table(symbols)
    label = table.indexes(addresses)
    found: list[dict[str, Fraction]] = [{} for _ in range(executed.shape[1])]
    shares: dict[tuple[str, str], I64] = {}
    for at in np.unique(label[label >= 0]).tolist():
        held = executed[label == at].sum(axis=0)
        shares[table.labels[at]] = shares.get(table.labels[at], 0) + held
    for row in counts.functions:
        share = shares.get((row.origin, row.name))
        for phase, part in _parts(None if share is None else share[:, CONTEXTS.index(row.context)]):
            into = found[phase]
            for kind, count in row.cost.specials.items():
                into[kind] = into.get(kind, Fraction(0)) + part * count
    return found


def _parts(share: I64 | None) -> Iterator[tuple[int, Fraction]]:
    """(phase, which part of a function is its)."""
    total = 0 if share is None else int(share.sum())
    if share is None or not total:
        yield -1, Fraction(1)
        return
    for phase in np.flatnonzero(share).tolist():
        yield phase, Fraction(int(share[phase]), total)
