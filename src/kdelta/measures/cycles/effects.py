# SPDX-License-Identifier: GPL-2.0-or-later
"""Model cycles of two kernels on one CPU: traced runs, layouts drawn alike, effects, verdicts."""

import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from kdelta.counts.model import RunCounts
from kdelta.cpus.model import CPU
from kdelta.host.interrupt import interruptible
from kdelta.infer.cycles.ensembles import RegionCost
from kdelta.infer.cycles.placement import placement_effects
from kdelta.infer.cycles.placement_model import (
    CodeChange,
    ComparedRegion,
    CycleVerdict,
    PlacementEffect,
)
from kdelta.infer.cycles.prices import FIXED, prices_of
from kdelta.infer.effects.effects import Word
from kdelta.infer.effects.packets import PhaseCost
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import Lab, RunPlan, RunResult
from kdelta.lab.progress import Progress
from kdelta.lab.recorded import recorded_runs
from kdelta.measures.cycles.cut import CutRegion, cut_note, cut_reason
from kdelta.measures.cycles.placement import (
    L2,
    PAGES,
    Drawn,
    PlacedKernel,
    costs,
    drawn_pairs,
    notes_on_l2,
    placed_run,
    policies_of,
    without_l2,
)
from kdelta.measures.path.same_code import KernelCode, codes_of

SEED = 1
"""Of the layouts: the same ones always, so that asking again gives the same verdicts."""


class Cycles(msgspec.Struct, frozen=True):
    """The effects on model cycles. `notes`: what is to be known about regions. `regions`: what was
    judged. `cut`: the regions whose trace was cut off, which have no effect, but a verdict there.
    `phases`: by side and region that is about packets, what each phase of the workload costs.
    """

    effects: tuple[PlacementEffect, ...]
    notes: tuple[str, ...] = ()
    regions: tuple[ComparedRegion, ...] = ()
    cut: tuple[CutRegion, ...] = ()
    phases: dict[str, dict[str, tuple[PhaseCost, ...]]] = {}


class Traced(msgspec.Struct, frozen=True, eq=False):
    """A kernel's runs, and its code as placed; None where the traced run did not go well."""

    done: tuple[RunResult, ...]
    placed: PlacedKernel | None = None

    @property
    def counts(self) -> tuple[RunCounts, ...]:
        """What the runs counted that went well."""
        return tuple(one.counts for one in self.done if one.counts is not None)


async def traced_runs(
    kernels: Sequence[Kernel], works: Sequence[RunPlan], lab: Lab
) -> list[Traced]:
    """Return all runs of each kernel, the first of which is traced, and where its code lies.
    UserError for a kernel whose symbols do not say where its code is.
    """
    found = await recorded_runs(kernels, works, lab)
    with interruptible():
        return [
            Traced(tuple(done), placed_run(kernel, done[0], lab.store) if done[0].counts else None)
            for kernel, done in zip(kernels, found, strict=True)
        ]


def cycles_between(
    base: Traced,
    other: Traced,
    cpu: CPU,
    *,
    layouts: int,
    margin: float,
    progress: Progress,
    data: bool = False,
) -> Cycles | None:
    """Return effects on model cycles, of the regions that both have; None without traced runs.

    layouts: how many are drawn for each. margin: which differences matter, as a fraction. data:
    misses of the L2 are in them, since accesses to data were traced.
    """
    if base.placed is None or other.placed is None:
        return None
    step = f"replay {other.placed.kernel.release} on {cpu.name}"
    progress.begin(step)
    kernels = ((base, base.placed), (other, other.placed))
    with interruptible():
        drawn = drawn_pairs(base.placed, other.placed, layouts, SEED)
        doing = functools.partial(progress.doing, step)
        sides = _replayed(kernels, drawn, cpu, doing, data=data)
        besides = (
            _replayed(kernels, drawn, cpu.least_recent, doing, data=data)
            if policies_of(cpu)
            else None
        )
        codes = codes_of(_known(base.placed), _known(other.placed))
    regions = _regions(sides, codes)
    without = [one.name for one in regions if L2 not in one.base.shipped]
    effects = placement_effects(regions, prices_of(cpu), margin)
    if besides:
        by_lru = placement_effects(_regions(besides, codes), prices_of(cpu), margin)
        effects = tuple(
            msgspec.structs.replace(one, lru=lru.verdict)
            for one, lru in zip(effects, by_lru, strict=True)
        )
    progress.end(step, f"{layouts} layouts of each kernel")
    cut = _cut((base.placed, other.placed))
    return Cycles(
        effects=effects,
        notes=(
            *(cut_note(one) for one in cut),
            *([PAGES] if any(_misses_pages(one) for one in regions) else []),
            *(notes_on_l2(cpu, without) if data else ()),
            *notes_on_replacement(cpu, effects),
        ),
        regions=tuple(regions),
        cut=cut,
    )


def _replayed(
    kernels: Iterable[tuple[Traced, PlacedKernel]],
    layouts: Iterable[Drawn],
    cpu: CPU,
    doing: Callable[[str], None],
    *,
    data: bool,
) -> list[dict[str, RegionCost]]:
    """What kernels cost on a CPU, each in its layouts. doing: is called with each region."""
    return [
        costs(placed, cpu, mine, runs=one.counts, data=data, doing=doing)
        for (one, placed), mine in zip(kernels, layouts, strict=True)
    ]


def _regions(
    sides: Sequence[Mapping[str, RegionCost]], codes: Mapping[str, CodeChange]
) -> list[ComparedRegion]:
    return [
        ComparedRegion(
            name, *_alike(sides[0][name], sides[1][name]), codes.get(name, CodeChange.DIFFERENT)
        )
        for name in sides[0]
        if name in sides[1]
    ]


def notes_on_replacement(cpu: CPU, effects: Sequence[PlacementEffect]) -> list[str]:
    """Whether verdicts depend on how the CPU's caches replace."""
    policies = policies_of(cpu)
    if not policies or not effects:
        return []
    kinds = ", ".join(f"{kind} {policy}" for kind, policy in policies.items())
    other = [
        f"{one.region} {one.lru.word.value}"
        for one in effects
        if one.lru is not None and one.lru.word is not one.verdict.word
    ]
    found = (
        f"under LRU these verdicts are others: {', '.join(other)}"
        if other
        else ("under LRU all verdicts are the same")
    )
    return [f"replacement on {cpu.name} is not LRU ({kinds}); {found}"]


def _cut(kernels: Iterable[PlacedKernel]) -> tuple[CutRegion, ...]:
    """The regions whose trace was cut off in any of these, with the larger need."""
    needs: dict[str, list[float | None]] = {}
    for placed in kernels:
        for one in placed.cut:
            needs.setdefault(one.name, []).append(one.gib)
    found = []
    for name, every in needs.items():
        gib = None if None in every else max(filter(None, every))
        found.append(CutRegion(name, gib, CycleVerdict(Word.UNRESOLVED, reason=cut_reason(gib))))
    return tuple(found)


def _alike(base: RegionCost, other: RegionCost) -> tuple[RegionCost, RegionCost]:
    """Both without misses of the L2, if one has none; and with those of data that both have."""
    if (L2 in base.shipped) != (L2 in other.shipped):
        base, other = without_l2(base), without_l2(other)
    unknown = {kind for kind in FIXED if (kind in base.executed) != (kind in other.executed)}
    return _without(base, unknown), _without(other, unknown)


def _without(cost: RegionCost, kinds: Collection[str]) -> RegionCost:
    executed = {name: amount for name, amount in cost.executed.items() if name not in kinds}
    return msgspec.structs.replace(cost, executed=executed)


def _misses_pages(region: ComparedRegion) -> bool:
    sides = (region.base, region.other)
    return any(side.shipped["itlb"] or side.ensemble.misses["itlb"].any() for side in sides)


def _known(one: PlacedKernel) -> KernelCode:
    kernel, program = one.kernel, one.run.workload_identity
    return KernelCode(kernel.identity, one.digest, one.counts, program, kernel.parameters)
