# SPDX-License-Identifier: GPL-2.0-or-later
"""A profile as JSON: document kdelta.profile/1."""

from typing import Literal

import msgspec

from kdelta.infer.profile import FunctionLine, Modelled, RegionProfile, part_of, ranked
from kdelta.report.json import JsonCost, JsonRun, document_text, json_cost, json_run
from kdelta.report.profile_model import ProfileReport


class JsonModelled(msgspec.Struct, frozen=True):
    """Misses by kind on a CPU, and model cycles: from `low` to `high`."""

    misses: dict[str, float]
    low: float
    high: float


class JsonProfiled(msgspec.Struct, frozen=True):
    """One function in one context of a region. part: "kernel", "modules" or "user". calls,
    inclusive: null where calls were not followed.
    """

    context: str
    part: str
    origin: str
    name: str
    cost: JsonCost
    calls: int | None
    inclusive: int | None
    modelled: JsonModelled | None


class JsonProfiledRegion(msgspec.Struct, frozen=True):
    """A region by function, those with the most instructions first; all contexts and parts."""

    name: str
    iterations: int
    functions: list[JsonProfiled]


class JsonProfile(msgspec.Struct, frozen=True):
    """The whole of `kdelta profile`. calls: what was followed: "all", "kernel" or "none"."""

    schema: Literal["kdelta.profile/1"]
    kdelta: str
    run: JsonRun
    calls: str
    regions: list[JsonProfiledRegion]
    left_out: list[str]
    notes: list[str]
    warnings: list[str]


def profile_json(report: ProfileReport, version: str) -> str:
    """The whole report; `version` is kdelta's."""
    return document_text(
        JsonProfile(
            schema="kdelta.profile/1",
            kdelta=version,
            run=json_run(report.run),
            calls=report.calls,
            regions=[_region(region) for region in report.regions],
            left_out=list(report.left_out),
            notes=list(report.notes),
            warnings=list(report.warnings),
        )
    )


def _region(region: RegionProfile) -> JsonProfiledRegion:
    functions = [_function(line) for line in ranked(region.lines)]
    return JsonProfiledRegion(region.name, region.iterations, functions)


def _function(line: FunctionLine) -> JsonProfiled:
    return JsonProfiled(
        context=line.context,
        part=part_of(line.origin).value,
        origin=line.origin,
        name=line.name,
        cost=json_cost(line.cost),
        calls=line.calls,
        inclusive=line.inclusive,
        modelled=_modelled(line.modelled) if line.modelled else None,
    )


def _modelled(one: Modelled) -> JsonModelled:
    return JsonModelled(one.misses, one.low, one.high)
