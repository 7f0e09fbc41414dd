# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta place` as JSON; the schema is kdelta.place/2."""

from typing import Literal

import msgspec

from kdelta.report.cut import JsonCut, json_cut
from kdelta.report.cycles_json import JsonCPU, JsonInterval, json_cpu
from kdelta.report.json import JsonSide, document_text, json_side
from kdelta.report.layout_json import JsonUnlikeCPU
from kdelta.report.model import Facts
from kdelta.report.place_model import (
    Applied,
    AppliedRegion,
    PlacedMisses,
    PlacedRegion,
    PlaceReport,
)


class JsonPlacedMisses(msgspec.Struct, frozen=True):
    """Misses of one kind, an iteration: as shipped, as predicted for the order, the median and the
    best of the random layouts; `associative`: of the order, if the cache had no sets; `bound`: no
    order has less; null where not known. `pays`: how many more than as shipped.
    """

    shipped: float
    predicted: float
    median: float
    best: float
    associative: float | None
    bound: float | None
    pays: float
    methods: dict[str, float]


class JsonPlacedRegion(msgspec.Struct, frozen=True):
    """A region; model cycles an iteration are from the lowest to the highest prices."""

    name: str
    weight: float
    iterations: int
    truncated: bool
    misses: dict[str, JsonPlacedMisses]
    shipped: JsonInterval
    predicted: JsonInterval


class JsonAppliedRegion(msgspec.Struct, frozen=True):
    """A region's L1I misses an iteration: `shipped` and `measured` were counted while the kernel as
    shipped and the relinked one ran. `path`: instructions an iteration that the relinked one has
    more. `as_predicted`: within 1 % or 50 misses, all iterations together.
    """

    name: str
    iterations: int
    shipped: float
    median: float
    best: float
    predicted: float
    measured: float
    path: float
    pays: float
    as_predicted: bool


class JsonApplied(msgspec.Struct, frozen=True):
    """The kernel relinked in the order; no regions if it could not be linked or run."""

    kernel: JsonSide
    regions: list[JsonAppliedRegion]
    payers: list[str]
    warnings: list[str]


class JsonPlace(msgspec.Struct, frozen=True):
    """The document. `file` is empty if nothing better than the shipped layout was found. `padding`:
    how many of the order's functions are never executed, and only fill. `costs`: by method, what
    misses cost, fully exposed, as a fraction of what the instructions cost. `applied`: null if the
    kernel was not relinked. `cut`: regions whose trace was cut off; such as have no trace are not
    among the regions.
    """

    schema: Literal["kdelta.place/2"]
    kdelta: str
    workloads: list[str]
    cpu: JsonCPU
    machine: Facts
    kernel: JsonSide
    layouts: int
    seed: int
    file: str
    functions: int
    padding: int
    method: str
    costs: dict[str, float]
    median: float
    best: float
    evaluations: int
    regions: list[JsonPlacedRegion]
    cut: list[JsonCut]
    payers: list[str]
    unlike: list[JsonUnlikeCPU]
    notes: list[str]
    warnings: list[str]
    applied: JsonApplied | None


def place_json(report: PlaceReport, version: str) -> str:
    """The document's text."""
    same = "layouts seed file functions padding method costs median best evaluations machine"
    return document_text(
        JsonPlace(
            schema="kdelta.place/2",
            kdelta=version,
            workloads=list(report.workloads),
            cpu=json_cpu(report.cpu),
            kernel=json_side(report.kernel),
            regions=[_region(region) for region in report.regions],
            cut=json_cut(report.cut),
            payers=[region.name for region in report.payers()],
            unlike=[JsonUnlikeCPU(one.name, one.text, list(one.regions)) for one in report.unlike],
            notes=list(report.notes),
            warnings=list(report.warnings),
            applied=_applied(report.applied) if report.applied else None,
            **{name: getattr(report, name) for name in same.split()},
        )
    )


def _region(region: PlacedRegion) -> JsonPlacedRegion:
    return JsonPlacedRegion(
        name=region.name,
        weight=region.weight,
        iterations=region.iterations,
        truncated=region.truncated,
        misses={kind: _misses(found) for kind, found in region.misses.items()},
        shipped=JsonInterval(region.shipped.low, region.shipped.high),
        predicted=JsonInterval(region.predicted.low, region.predicted.high),
    )


def _misses(found: PlacedMisses) -> JsonPlacedMisses:
    return msgspec.convert(found, JsonPlacedMisses, from_attributes=True)


def _applied(found: Applied) -> JsonApplied:
    return JsonApplied(
        kernel=json_side(found.kernel),
        regions=[_applied_region(region) for region in found.regions],
        payers=[region.name for region in found.regions if region.pays],
        warnings=list(found.warnings),
    )


def _applied_region(region: AppliedRegion) -> JsonAppliedRegion:
    same = "name iterations shipped median best predicted measured path pays"
    return JsonAppliedRegion(
        as_predicted=region.is_as_predicted,
        **{name: getattr(region, name) for name in same.split()},
    )
