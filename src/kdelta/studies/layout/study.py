# SPDX-License-Identifier: GPL-2.0-or-later
"""How much a workload's regions depend on where the linker put the code."""

from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np

from kdelta.counts.model import merged_regions
from kdelta.cpus.model import CPU, LINES, LRU, Cache
from kdelta.host.interrupt import interruptible
from kdelta.infer.cycles.ensembles import Interval, RegionCost
from kdelta.infer.cycles.prices import FIXED, INSNS, priced_kinds, prices_of
from kdelta.infer.cycles.sensitivity import cycle_range, distribution, replaced
from kdelta.lab.found import in_rounds
from kdelta.lab.lab import Lab
from kdelta.lab.progress import Progress, Silent
from kdelta.lab.reports import facts_of_machine, reported_cpu, reported_side, unlike
from kdelta.lab.work import Work
from kdelta.measures.cycles.placement import (
    PAGES,
    PlacedKernel,
    by_kind,
    caches_of,
    costs,
    drawn,
    has_data,
    notes_on_l2,
    own_misses,
    placed_run,
    policies_of,
    run_symbols,
)
from kdelta.replay.collisions import Collisions, collisions
from kdelta.replay.functions import REST
from kdelta.replay.layouts import aligned
from kdelta.replay.simulate import PreparedTrace
from kdelta.report.cpus import bytes_text
from kdelta.report.packets import NOT_IN_IT
from kdelta.spec.errors import LabError
from kdelta.store.store import Store
from kdelta.studies.layout.model import (
    REPLACEMENTS,
    Aligned,
    Collision,
    LayoutRegion,
    LayoutReport,
)
from kdelta.studies.layout.phases import with_phases
from kdelta.studies.layout.request import LayoutRequest
from kdelta.studies.layout.traced_kernel import TracedKernel, traced_kernel

ALIGNMENTS = (16, 32, 64)
"""What functions may be aligned to, in bytes."""

_NAMED = 50
_SMALL_PAGE_BYTES = 4096
_SILENT = Silent()
NOT_IN_THE_MODEL = (
    "not in the model: mispredicted branches, how code lies within a line (fetch windows, decoded "
    "operations), prefetching, page walks, other CPUs; docs/cpus.md has all of it"
)


L2_IS_NOT = (
    "misses of the L2 are not in it: code and data share it, and what data is accessed was not "
    "recorded (--data)"
)
AS_LINKED = (
    "the path is that of the kernel as it was linked: functions that search tables of addresses "
    "may take other steps under another layout"
)


@in_rounds
async def run_layout(request: LayoutRequest, lab: Lab) -> LayoutReport:
    """The report. A kernel that could not be built, and a run that failed, are in it as such.

    UserError for an unknown workload or operation, and for a kernel without symbols.
    """
    store, progress = lab.store, lab.progress
    progress.expect("replay", 1)
    found = await traced_kernel(
        request.kernel,
        request.cpu,
        [Work(request.workload, request.operations, request.program)],
        lab.with_request(request.lab),
    )
    if found.kernel is None or not found.ok:
        return _report(request, found, None, (), store)
    with interruptible():
        placed = placed_run(found.kernel, found.done[0], store)
    step = f"replay on {request.cpu.name}"
    progress.begin(step)
    with interruptible():
        regions = layout_regions(
            placed,
            request.cpu,
            layouts=request.layouts,
            seed=request.seed,
            data=request.lab.data_lines,
            step=step,
            progress=progress,
        )
        if rules := Work(request.workload, program=request.program).phases:
            regions = with_phases(
                placed,
                regions,
                request.cpu,
                drawn(placed, request.layouts, request.seed),
                rules=rules,
                symbols=run_symbols(found.kernel, store, placed.run),
                doing=lambda what: progress.doing(step, what),
            )
    progress.end(step, f"{request.layouts} layouts")
    return _report(request, found, placed, regions, store)


def layout_regions(
    placed: PlacedKernel,
    cpu: CPU,
    *,
    layouts: int,
    seed: int,
    data: bool = False,
    step: str = "",
    progress: Progress = _SILENT,
) -> tuple[LayoutRegion, ...]:
    """What depends on placement in each region of a traced run, in the order of the run. data: with
    misses of the L2, where a trace has what they take; alignments are reported without these.
    """
    return _LayoutStudy(placed, cpu, layouts, seed, data=data).regions(step, progress)


class _LayoutStudy:
    """One kernel's traces on one CPU."""

    def __init__(
        self, placed: PlacedKernel, cpu: CPU, layouts: int, seed: int, *, data: bool
    ) -> None:
        self._placed = placed
        self._data = data
        self._cpu = cpu
        self._prices = prices_of(cpu)
        self._caches = caches_of(cpu)
        self._drawn = drawn(placed, layouts, seed)
        self._aligned = {
            size: (
                aligned(placed.placement, size)[placed.executed],
                by_kind(placed, drawn(placed, layouts, seed, alignment=size), cpu),
            )
            for size in ALIGNMENTS
        }

    def regions(self, step: str, progress: Progress) -> tuple[LayoutRegion, ...]:
        """All of them; progress reports each."""
        cost_of = costs(
            self._placed,
            self._cpu,
            self._drawn,
            data=self._data,
            doing=lambda region: progress.doing(step, region),
        )
        policies = policies_of(self._cpu)
        lru = (
            costs(
                self._placed,
                self._cpu.least_recent,
                self._drawn,
                doing=lambda region: progress.doing(step, f"{region}, LRU for comparison"),
            )
            if policies
            else {}
        )
        counted = merged_regions(self._placed.counts)
        found = []
        for index, trace in enumerate(self._placed.traces):
            if trace.region not in counted:
                continue
            progress.doing(step, f"{trace.region}: alignments, collisions")
            cost = cost_of[trace.region]
            made = self._region(index, cost)
            if policies:
                besides = replaced(cost, lru[trace.region], policies)
                made = msgspec.structs.replace(made, replacement=besides)
            found.append(made)
        return tuple(found)

    def _region(self, index: int, cost: RegionCost) -> LayoutRegion:
        trace = self._placed.traces[index]
        prepared, per = self._placed.prepared(index), self._placed.iterations(index)
        lines = collisions(prepared, self._placed.shipped(), self._cpu.l1i)
        total = prepared.replay(
            self._placed.shipped()[np.newaxis], self._cpu.l1i, by_function=False
        ).total.sum()
        _must_add_up(trace.region, lines, int(total))
        pairs = _unordered(lines)
        return LayoutRegion(
            name=trace.region,
            iterations=trace.iterations,
            insns=cost.amount(INSNS),
            misses={
                kind: distribution(draws, cost.shipped[kind])
                for kind, draws in cost.ensemble.misses.items()
            },
            draws={kind: tuple(draws.tolist()) for kind, draws in cost.ensemble.misses.items()},
            cycles=cycle_range(cost, self._prices),
            aligned=tuple(self._aligned_to(size, prepared, per) for size in self._aligned),
            collisions=tuple(self._collision(pair, per) for pair in pairs[:_NAMED]),
            colliding=sum(misses for _, misses, _ in pairs) / per,
            pairs=len(pairs),
            data={kind: float(cost.amount(kind).value) for kind in FIXED if kind in cost.executed},
        )

    def _aligned_to(self, size: int, prepared: PreparedTrace, per: float) -> Aligned:
        same_order, every = self._aligned[size]
        as_linked = dict.fromkeys(self._caches, same_order[np.newaxis])
        found = own_misses(prepared, every, self._caches, per)
        one = {
            str(kind): float(counts[0])
            for kind, counts in own_misses(prepared, as_linked, self._caches, per).items()
        }
        return Aligned(
            size,
            one,
            {str(kind): distribution(counts, one[str(kind)]) for kind, counts in found.items()},
        )

    def _collision(self, pair: "_Pair", per: float) -> Collision:
        (one, other), misses, sets = pair
        price = self._cpu.misses[LINES]
        count = misses / per
        return Collision(
            functions=(self._name(one), self._name(other)),
            misses=count,
            sets=sets,
            cycles=Interval(count * price.hidden, count * price.exposed),
        )

    def _name(self, function: int) -> str:
        return self._placed.placement.functions[int(self._placed.executed[function])].name


_Pair = tuple[tuple[int, int], int, tuple[int, ...]]
"""Two functions, the misses of both on lines that the other put out, and in which sets."""


def _unordered(found: Collisions) -> list[_Pair]:
    """The pairs, whichever of two put out the other, those with the most misses first."""
    misses: Counter[tuple[int, int]] = Counter()
    sets: dict[tuple[int, int], set[int]] = {}
    for pair in found.pairs():
        key = min(pair.function, pair.evictor), max(pair.function, pair.evictor)
        misses[key] += pair.misses
        sets.setdefault(key, set()).update(pair.sets)
    ranked = sorted(misses.items(), key=lambda item: (-item[1], item[0]))
    return [(key, count, tuple(sorted(sets[key]))) for key, count in ranked]


def _must_add_up(region: str, found: Collisions, total: int) -> None:
    """Raises LabError unless the collisions are all misses that the replay finds."""
    collided = int(found.misses.sum()) + found.first
    if collided != total or int(found.by_set.sum()) != total:
        raise LabError(
            f"{region}: collisions add up to {collided} misses of {total}",
            "this is a fault of kdelta's; please report it with the kernel and the CPU",
        )


def _report(
    request: LayoutRequest,
    found: TracedKernel,
    placed: PlacedKernel | None,
    regions: tuple[LayoutRegion, ...],
    store: Store,
) -> LayoutReport:
    cpu = reported_cpu(request.cpu)
    data = request.lab.data_lines
    report = LayoutReport(
        workload=Work(request.workload, program=request.program).title,
        cpu=msgspec.structs.replace(cpu, without_measured_cost=guessed_of(request.cpu, regions)),
        caches=cache_texts(request.cpu, data=data),
        machine=facts_of_machine(found.done, store),
        kernel=reported_side(found.spec, found.kernel, found.done, found.failure, store),
        layouts=request.layouts,
        seed=request.seed,
    )
    if placed is None:
        return report
    functions = [placed.placement.functions[index] for index in placed.executed.tolist()]
    alignments = Counter(one.alignment for one in functions if one.movable and one.kind == "main")
    return msgspec.structs.replace(
        report,
        executed=sum(one.origin != REST for one in functions),
        movable=sum(one.movable for one in functions),
        alignment=alignments.most_common(1)[0][0] if alignments else 0,
        regions=regions,
        cut=placed.cut,
        mismatches=unlike(request.cpu, found.done[0], store),
        notes=notes_on(request.cpu, placed, data=data),
        warnings=placed.counts.warnings,
    )


def guessed_of(cpu: CPU, regions: Sequence[LayoutRegion]) -> tuple[str, ...]:
    """The kinds of misses in the regions' model cycles whose prices were not measured."""
    prices = prices_of(cpu)
    shown = {kind for one in regions for kind in priced_kinds(prices, one.misses)}
    of_code = (kind for kind in prices.misses if kind in shown)
    of_data = (kind for kind in prices.guesses if any(one.data.get(kind) for one in regions))
    return (*(kind for kind in of_code if not prices.misses[kind].calibrated), *of_data)


def cache_texts(cpu: CPU, *, data: bool = False) -> tuple[str, ...]:
    """What is replayed, in words; with data, its own first level and the L2 too."""
    itlb = f"{cpu.itlb.entries} pages of {bytes_text(cpu.itlb.line_bytes)}{_policy(cpu.itlb)}"
    texts = (
        f"L1I {bytes_text(cpu.l1i.bytes)}, {_ways(cpu.l1i)}, lines of {cpu.l1i.line_bytes}",
        f"ITLB {itlb}",
        f"BTB {cpu.btb.entries} branches, {_ways(cpu.btb)}" if cpu.btb else "",
        f"L1D {bytes_text(cpu.l1d.bytes)}, {_ways(cpu.l1d)}" if data else "",
        f"DTLB {cpu.dtlb.entries} pages" if data and cpu.dtlb else "",
        f"L2 {bytes_text(cpu.l2.bytes)}, {_ways(cpu.l2)}" if data else "",
    )
    return tuple(filter(None, texts))


def _ways(cache: Cache) -> str:
    return f"{cache.ways}-way{_policy(cache)}"


def _policy(cache: Cache) -> str:
    return "" if cache.replacement == LRU else f", replaced {REPLACEMENTS[cache.replacement]}"


def notes_on(cpu: CPU, placed: PlacedKernel, *, data: bool = False) -> tuple[str, ...]:
    """What is not in the figures; data: whether accesses to data were to be recorded."""
    unknown = [trace.region for trace in placed.traces if not has_data(trace)]
    notes = [
        NOT_IN_THE_MODEL,
        AS_LINKED,
        PAGES,
        *(notes_on_l2(cpu, unknown) if data else [L2_IS_NOT]),
    ]
    if cpu.btb is None:
        notes.append(f"branch targets are not in it: the BTB of {cpu.name} was not published")
    if cpu.itlb.line_bytes > _SMALL_PAGE_BYTES:
        notes.append(
            "pages are taken as the kernel's own code is mapped, for modules and programs too, "
            "which have smaller ones"
        )
    if any(region.packets for region in placed.counts.regions):
        notes.append(NOT_IN_IT)
    return tuple(notes)
