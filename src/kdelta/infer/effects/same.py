# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the counts of two runs part that should have been the same."""

from collections.abc import Iterator

import msgspec

from kdelta.counts.by_key import by_key
from kdelta.counts.model import Context, Cost, Iterations, RegionCounts, RunCounts, total_cost

CUT_MOST = 64
"""How many instructions of a region may count for another function in runs that are equal.

A block counts for the function that it begins in. Where straight code has several labels, as the
kernel's entries have, one block is in several of them; and blocks also end where a timer of the
emulator's does, at some moment of the host's time. The sums are the same.
"""


def partings(first: RunCounts, second: RunCounts) -> Iterator[str]:
    """One line for each place where the counts differ, the first one first; none if they are equal.

    Warnings are no counts, and neither is where a block was cut (`CUT_MOST`).
    """
    names = [region.name for region in first.regions], [region.name for region in second.regions]
    if names[0] != names[1]:
        yield f"regions: {_shown(names[0])} and {_shown(names[1])}"
        return
    for one, two in zip(first.regions, second.regions, strict=True):
        if one != two and not _only_cut(one, two):
            yield from _in_region(one, two)


def _only_cut(one: RegionCounts, two: RegionCounts) -> bool:
    """Whether nothing differs but the functions that some instructions of a block count for."""
    if one != msgspec.structs.replace(two, functions=one.functions):
        return False
    ones, twos = _by_function(one), _by_function(two)
    moved = sum(max(0, cost.insns - twos.get(key, Cost()).insns) for key, cost in ones.items())
    return moved <= CUT_MOST and _by_origin(ones) == _by_origin(twos)


def _by_origin(costs: dict[tuple[Context, str, str], Cost]) -> dict[tuple[Context, str], Cost]:
    found = by_key(((context, origin), cost) for (context, origin, _), cost in costs.items())
    return {key: total_cost(parts) for key, parts in found.items()}


def _shown(names: list[str]) -> str:
    return ", ".join(names) or "none"


def _in_region(one: RegionCounts, two: RegionCounts) -> Iterator[str]:
    if one.iteration_count != two.iteration_count:
        yield f"{one.name}: {one.iteration_count} and {two.iteration_count} iterations"
    else:
        for row in Iterations.__struct_fields__:
            yield from _first_iteration(one, two, row)
    ones, twos = _by_function(one), _by_function(two)
    for key in sorted(ones.keys() | twos.keys()):
        costs = ones.get(key, Cost()), twos.get(key, Cost())
        if costs[0] != costs[1]:
            context, origin, name = key
            yield f"{one.name}: {name} ({origin}, {context}): {_cost(*costs)}"
    if one.left != two.left:
        yield f"{one.name}: {_left(one)} and {_left(two)} instructions left to other tasks"
    if one.clock_ticks != two.clock_ticks:
        yield f"{one.name}: {one.clock_ticks} and {two.clock_ticks} clock ticks"


def _left(region: RegionCounts) -> str:
    return str(region.left.insns) if region.left else "no"


def _first_iteration(one: RegionCounts, two: RegionCounts, row: str) -> Iterator[str]:
    pairs = zip(getattr(one.iterations, row), getattr(two.iterations, row), strict=False)
    for index, (insns, others) in enumerate(pairs):
        if insns != others:
            kind = row.replace("_", " ")
            yield f"{one.name}: iteration {index}: {kind}: {insns} and {others} instructions"
            return


def _by_function(region: RegionCounts) -> dict[tuple[Context, str, str], Cost]:
    found = by_key(((one.context, one.origin, one.name), one.cost) for one in region.functions)
    costs = {key: total_cost(parts) for key, parts in found.items()}
    return {key: cost for key, cost in costs.items() if cost != Cost()}


def _cost(one: Cost, two: Cost) -> str:
    figures = [(name, getattr(one, name), getattr(two, name)) for name in Cost.__struct_fields__]
    return ", ".join(f"{name} {mine} and {its}" for name, mine, its in figures if mine != its)
