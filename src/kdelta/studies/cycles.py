# SPDX-License-Identifier: GPL-2.0-or-later
"""Model cycles of two kernels on one CPU: traced runs, layouts drawn alike, effects, verdicts."""

from collections.abc import Sequence

import msgspec

from kdelta.counts.model import RunCounts
from kdelta.cpus.model import CPU
from kdelta.host.interrupt import interruptible
from kdelta.infer.ensembles import RegionCost
from kdelta.infer.placement import placement_effects
from kdelta.infer.placement_model import Code, PlacementEffect, Region
from kdelta.infer.prices import prices_of
from kdelta.kernels.model import Kernel
from kdelta.store.store import Store
from kdelta.studies.lab import Done, Lab, Work
from kdelta.studies.placement import (
    L2,
    PAGES,
    PlacedKernel,
    costs,
    drawn_pairs,
    notes_on_l2,
    placed_run,
    tracing,
    without_l2,
)
from kdelta.studies.requests import LabRequest, Progress
from kdelta.studies.same_code import Known, codes_of

SEED = 1
"""Of the layouts: the same ones always, so that asking again gives the same verdicts."""


class Cycles(msgspec.Struct, frozen=True):
    """The effects on model cycles. `codes`: how the code that a region executes differs. `notes`:
    what is to be known about regions. `regions`: what was judged.
    """

    effects: tuple[PlacementEffect, ...]
    codes: dict[str, Code] = {}
    notes: tuple[str, ...] = ()
    regions: tuple[Region, ...] = ()


class Traced(msgspec.Struct, frozen=True, eq=False):
    """A kernel's runs, and its code as placed; None where the traced run did not go well."""

    done: tuple[Done, ...]
    placed: PlacedKernel | None = None

    @property
    def counts(self) -> tuple[RunCounts, ...]:
        """What the runs counted that went well."""
        return tuple(one.counts for one in self.done if one.counts is not None)


async def recorded_runs(
    request: LabRequest,
    store: Store,
    progress: Progress,
    kernels: Sequence[Kernel],
    works: Sequence[Work],
) -> list[list[Done]]:
    """All runs of each kernel, the first of which is traced. A traced run is a run like any other,
    so the first is made once; but asked for `again`, it is first made as it was.
    """
    lab = Lab(msgspec.structs.replace(request, trace=False, data_lines=False), store, progress)
    first = await lab.runs(kernels, works) if request.again else None
    known = msgspec.structs.replace(tracing(request), again=False)
    recorded = await Lab(known, store, progress).runs(kernels, works)
    every = first or await lab.runs(kernels, works)
    return [[*one, *done[1:]] for one, done in zip(recorded, every, strict=True)]


async def traced_runs(
    request: LabRequest,
    store: Store,
    progress: Progress,
    kernels: Sequence[Kernel],
    works: Sequence[Work],
) -> list[Traced]:
    """The same, and where the code of each kernel lies. UserError for one whose symbols do not say
    where its code is.
    """
    found = await recorded_runs(request, store, progress, kernels, works)
    with interruptible():
        return [
            Traced(tuple(done), placed_run(kernel, done[0], store) if done[0].counts else None)
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
    """The effects on the model cycles of the regions that both have; None without traced runs.

    layouts: how many are drawn for each. margin: which differences matter, as a fraction. data:
    misses of the L2 are in them, since accesses to data were traced.
    """
    if base.placed is None or other.placed is None:
        return None
    step = f"replay {other.placed.kernel.release} on {cpu.name}"
    progress.begin(step)
    drawn = drawn_pairs(base.placed, other.placed, layouts, SEED)
    sides = [
        costs(
            one.placed,
            cpu,
            mine,
            runs=one.counts,
            data=data,
            doing=lambda region: progress.doing(step, region),
        )
        for one, mine in zip((base, other), drawn, strict=True)
        if one.placed
    ]
    codes = codes_of(_known(base.placed), _known(other.placed))
    regions = [
        Region(name, *_alike(sides[0][name], sides[1][name]), codes.get(name, Code.DIFFERENT))
        for name in sides[0]
        if name in sides[1]
    ]
    effects = placement_effects(regions, prices_of(cpu), margin)
    progress.end(step, f"{layouts} layouts of each kernel")
    return Cycles(
        effects=effects,
        codes={one.name: one.code for one in regions},
        notes=(
            *_cut("base", base.placed),
            *_cut("other", other.placed),
            *([PAGES] if any(_misses_pages(one) for one in regions) else []),
            *(_on_l2(cpu, regions) if data else ()),
        ),
        regions=tuple(regions),
    )


def _alike(base: RegionCost, other: RegionCost) -> tuple[RegionCost, RegionCost]:
    """Both without misses of the L2, if one has none."""
    if (L2 in base.shipped) == (L2 in other.shipped):
        return base, other
    return without_l2(base), without_l2(other)


def _misses_pages(region: Region) -> bool:
    sides = (region.base, region.other)
    return any(side.shipped["itlb"] or side.ensemble.misses["itlb"].any() for side in sides)


def _on_l2(cpu: CPU, regions: Sequence[Region]) -> list[str]:
    return notes_on_l2(cpu, [one.name for one in regions if L2 not in one.base.shipped])


def _known(one: PlacedKernel) -> Known:
    return Known(one.kernel.identity, one.digest, one.counts, one.run.workload_identity)


def _cut(word: str, one: PlacedKernel) -> list[str]:
    return [
        f"{region}: its trace was cut off in {word}, so its misses are those of its first part"
        for region in one.truncated
    ]
