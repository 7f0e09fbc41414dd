# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta layout` as JSON; the schema is kdelta.layout/1."""

from typing import Literal

import msgspec

from kdelta.infer.ensembles import Interval
from kdelta.infer.sensitivity import Distribution
from kdelta.report.cut import JsonCut, json_cut
from kdelta.report.cycles_json import JsonCPU, JsonInterval, json_cpu
from kdelta.report.estimate_json import JsonEstimate, json_estimate
from kdelta.report.json import JsonSide, document_text, json_side
from kdelta.report.layout_model import LayoutRegion, LayoutReport
from kdelta.report.model import Facts


class JsonDistribution(msgspec.Struct, frozen=True):
    """A figure over random layouts; `percentile` of them have less than the shipped one."""

    least: float
    quarter: float
    median: float
    three_quarters: float
    most: float
    mean: float
    shipped: float
    percentile: float


class JsonCycleRange(msgspec.Struct, frozen=True):
    """Model cycles an iteration, from the lowest to the highest prices; `executed` is without
    misses. `swing`: the costliest layout less the cheapest, as a fraction of the median, if no miss
    is hidden.
    """

    executed: JsonInterval
    shipped: JsonInterval
    least: JsonInterval
    quarter: JsonInterval
    median: JsonInterval
    three_quarters: JsonInterval
    most: JsonInterval
    percentile: float
    swing: float


class JsonAligned(msgspec.Struct, frozen=True):
    """Misses by kind with functions aligned to so many bytes: in the order as linked, and over
    random orders, where that one is `shipped`.
    """

    bytes: int
    same_order: dict[str, float]
    drawn: dict[str, JsonDistribution]


class JsonCollision(msgspec.Struct, frozen=True):
    """Functions that put out each other's lines as shipped: misses an iteration of all contexts."""

    functions: tuple[str, str]
    misses: float
    sets: list[int]
    cycles: JsonInterval


class JsonLayoutPhase(msgspec.Struct, frozen=True):
    """A phase of a region, an iteration, of all tasks and interrupts: its calls, 0 for what is in
    no phase; instructions; misses by kind; model cycles.
    """

    name: str
    calls: float
    insns: float
    misses: dict[str, JsonDistribution]
    cycles: JsonCycleRange


class JsonReplacement(msgspec.Struct, frozen=True):
    """Misses under the CPU's own replacement policy and under LRU, over the same layouts;
    `correlation` of their ranks, and whether it `hangs` on the policy which layouts are good.
    """

    policy: str
    own: JsonDistribution
    lru: JsonDistribution
    correlation: float | None
    hangs: bool


class JsonLayoutRegion(msgspec.Struct, frozen=True, omit_defaults=True):
    """A region; misses are of its own work, an iteration, by kind; `draws` those of each layout.
    `colliding`: the misses of all `pairs` of functions, those that are not listed too.
    `replacement`: by kind, of caches that replace otherwise than by LRU. `phases`: of a workload
    that has any; what is in none is the last. `data`: what accesses to data miss, an iteration, by
    kind, which no layout changes.
    """

    name: str
    iterations: int
    insns: JsonEstimate
    truncated: bool
    misses: dict[str, JsonDistribution]
    draws: dict[str, list[float]]
    cycles: JsonCycleRange
    aligned: list[JsonAligned]
    collisions: list[JsonCollision]
    colliding: float
    pairs: int
    replacement: dict[str, JsonReplacement] = {}
    phases: list[JsonLayoutPhase] = []
    data: dict[str, float] = {}


class JsonUnlikeCPU(msgspec.Struct, frozen=True):
    """A path that the kernel did not take as on the CPU, and the regions that hang on it."""

    name: str
    text: str
    regions: list[str]


class JsonLayout(msgspec.Struct, frozen=True):
    """The document. `cut`: regions whose trace was cut off; such as have no trace at all are not
    among the regions.
    """

    schema: Literal["kdelta.layout/1"]
    kdelta: str
    workload: str
    cpu: JsonCPU
    machine: Facts
    kernel: JsonSide
    layouts: int
    seed: int
    executed_functions: int
    movable_functions: int
    alignment: int
    regions: list[JsonLayoutRegion]
    cut: list[JsonCut]
    unlike: list[JsonUnlikeCPU]
    notes: list[str]
    warnings: list[str]


def layout_json(report: LayoutReport, version: str) -> str:
    """The document's text."""
    return document_text(
        JsonLayout(
            schema="kdelta.layout/1",
            kdelta=version,
            workload=report.workload,
            cpu=json_cpu(report.cpu),
            machine=report.machine,
            kernel=json_side(report.kernel),
            layouts=report.layouts,
            seed=report.seed,
            executed_functions=report.executed,
            movable_functions=report.movable,
            alignment=report.alignment,
            regions=[_region(region) for region in report.regions],
            cut=json_cut(report.cut),
            unlike=[JsonUnlikeCPU(one.name, one.text, list(one.regions)) for one in report.unlike],
            notes=list(report.notes),
            warnings=list(report.warnings),
        )
    )


def _region(region: LayoutRegion) -> JsonLayoutRegion:
    return JsonLayoutRegion(
        name=region.name,
        iterations=region.iterations,
        insns=json_estimate(region.insns),
        truncated=region.truncated,
        misses=_distributions(region.misses),
        draws={kind: list(draws) for kind, draws in region.draws.items()},
        cycles=msgspec.convert(region.cycles, JsonCycleRange, from_attributes=True),
        aligned=[
            JsonAligned(one.bytes, one.same_order, _distributions(one.drawn))
            for one in region.aligned
        ],
        collisions=[
            JsonCollision(one.functions, one.misses, list(one.sets), _interval(one.cycles))
            for one in region.collisions
        ],
        colliding=region.colliding,
        pairs=region.pairs,
        replacement={
            kind: msgspec.convert(one, JsonReplacement, from_attributes=True)
            for kind, one in region.replacement.items()
        },
        phases=[
            msgspec.convert(one, JsonLayoutPhase, from_attributes=True) for one in region.phases
        ],
        data=region.data,
    )


def _distributions(found: dict[str, Distribution]) -> dict[str, JsonDistribution]:
    return {
        kind: msgspec.convert(one, JsonDistribution, from_attributes=True)
        for kind, one in found.items()
    }


def _interval(interval: Interval) -> JsonInterval:
    return JsonInterval(interval.low, interval.high)
