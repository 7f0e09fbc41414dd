# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether chance may have made a difference that a search goes by: the rules are chance.py's.

A search has many kernels and asks of many pairs of them whether they differ in a region. Each pair
is judged as `compare` would judge it: what it does not call faster, slower or mixed, and what few
runs may have made, is no difference for a search until there are `ENOUGH` runs of both kernels.
"""

from collections.abc import Sequence

import msgspec

from kdelta.counts.model import (
    Context,
    Cost,
    FunctionCost,
    RegionCounts,
    RunCounts,
    merged_regions,
    total_cost,
)
from kdelta.infer.effects.chance import by_chance
from kdelta.infer.effects.effects import FIRM, compare
from kdelta.infer.effects.functions import strip_suffixes
from kdelta.infer.effects.paths import ADDRESS_LOOKUPS


def region_runs(runs: Sequence[RunCounts]) -> dict[str, tuple[RegionCounts, ...]]:
    """Each region that all runs have, run by run, as a search compares them: without lookups by
    address, and with one row for all functions of an origin.
    """
    found = [merged_regions(run) for run in runs]
    names = [name for name in found[0] if all(name in one for one in found)] if found else []
    return {name: tuple(_in_short(regions[name]) for regions in found) for name in names}


def _in_short(region: RegionCounts) -> RegionCounts:
    costs: dict[tuple[Context, str], list[Cost]] = {}
    for row in region.functions:
        if row.context != "own" or strip_suffixes(row.name) not in ADDRESS_LOOKUPS:
            costs.setdefault((row.context, row.origin), []).append(row.cost)
    functions = tuple(
        FunctionCost(context, origin, "", total_cost(rows))
        for (context, origin), rows in costs.items()
    )
    return msgspec.structs.replace(region, functions=functions)


def is_doubtful(base: Sequence[RegionCounts], other: Sequence[RegionCounts]) -> bool:
    """Whether chance may have made the difference between two kernels' runs of one region, of
    which there is at least one each.
    """
    sides = [[RunCounts((region,)) for region in side] for side in (base, other)]
    effects = compare(*sides)
    (effect,) = effects.operations
    return effect.verdict.word not in FIRM or bool(by_chance(effects, *sides))
