# SPDX-License-Identifier: GPL-2.0-or-later
"""The runs of one region as searches compare them: by the index of each run's perturbation.

A search has many kernels and asks of many pairs of them whether they differ in a region. Each pair
is judged as `compare` would judge it: what it does not call faster, slower or mixed, and what few
runs may have made, is no difference for a search until there are `ENOUGH` runs of both kernels.
"""

from collections.abc import Mapping, Sequence

import msgspec

from kdelta.counts.by_key import by_key
from kdelta.counts.model import (
    FunctionCost,
    RegionCounts,
    RunCounts,
    merged_regions,
    total_cost,
)
from kdelta.infer.effects.chance import by_chance
from kdelta.infer.effects.effects import FIRM, compare_runs
from kdelta.infer.effects.estimate import Estimate
from kdelta.infer.effects.functions import strip_suffixes
from kdelta.infer.effects.paths import ADDRESS_LOOKUPS, common_regions

RunsByIndex = Mapping[int, RegionCounts]
"""Runs of one region: see `region_runs`."""


def region_runs(runs: Sequence[RunCounts]) -> dict[str, dict[int, RegionCounts]]:
    """Return each region that all runs have, by the index of the run's perturbation, as a search
    compares them: without lookups by address, and with one row for all functions of an origin. A
    run whose index is not known has a negative one of its own, and is in no pair.
    """
    indexes = [
        ~place if one.perturbation is msgspec.UNSET else one.perturbation
        for place, one in enumerate(runs)
    ]
    common = common_regions(map(merged_regions, runs))
    return {
        name: dict(zip(indexes, map(_in_short, regions), strict=True))
        for name, regions in common.items()
    }


def _in_short(region: RegionCounts) -> RegionCounts:
    costs = by_key(
        ((row.context, row.origin), row.cost)
        for row in region.functions
        if row.context != "own" or strip_suffixes(row.name) not in ADDRESS_LOOKUPS
    )
    functions = tuple(
        FunctionCost(context, origin, "", total_cost(rows))
        for (context, origin), rows in costs.items()
    )
    return msgspec.structs.replace(region, functions=functions)


def _as_runs(side: RunsByIndex) -> list[RunCounts]:
    return [
        RunCounts((region,), perturbation=msgspec.UNSET if index < 0 else index)
        for index, region in side.items()
    ]


def is_doubtful(base: RunsByIndex, other: RunsByIndex, *, alike: bool = False) -> bool:
    """Return whether chance may have made the difference between two kernels' runs of one region,
    of which there is at least one each. alike: see `compare_runs`.
    """
    sides = _as_runs(base), _as_runs(other)
    effects = compare_runs(*sides, alike=alike)
    (effect,) = effects.operations
    return effect.verdict.word not in FIRM or bool(by_chance(effects, *sides))


def region_effect(base: RunsByIndex, other: RunsByIndex, *, alike: bool = False) -> Estimate | None:
    """Return what one kernel executes more than another in a region by all these runs, as compare
    has it; None where it has no figure. alike: see `compare_runs`.
    """
    (effect,) = compare_runs(_as_runs(base), _as_runs(other), alike=alike).operations
    return effect.costs.insns.effect if effect.costs else None
