# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the counts of two runs part that should have been the same."""

from collections.abc import Iterator

from kdelta.counts.model import Context, Cost, Iterations, RegionCounts, RunCounts


def partings(first: RunCounts, second: RunCounts) -> Iterator[str]:
    """One line for each place where the counts differ, the first one first; none if they are equal.

    Warnings are no counts.
    """
    names = [region.name for region in first.regions], [region.name for region in second.regions]
    if names[0] != names[1]:
        yield f"regions: {_shown(names[0])} and {_shown(names[1])}"
        return
    for one, two in zip(first.regions, second.regions, strict=True):
        if one != two:
            yield from _in_region(one, two)


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
    if one.clock_ticks != two.clock_ticks:
        yield f"{one.name}: {one.clock_ticks} and {two.clock_ticks} clock ticks"


def _first_iteration(one: RegionCounts, two: RegionCounts, row: str) -> Iterator[str]:
    pairs = zip(getattr(one.iterations, row), getattr(two.iterations, row), strict=False)
    for index, (insns, others) in enumerate(pairs):
        if insns != others:
            kind = row.replace("_", " ")
            yield f"{one.name}: iteration {index}: {kind}: {insns} and {others} instructions"
            return


def _by_function(region: RegionCounts) -> dict[tuple[Context, str, str], Cost]:
    found: dict[tuple[Context, str, str], Cost] = {}
    for function in region.functions:
        key = function.context, function.origin, function.name
        found[key] = found.get(key, Cost()) + function.cost
    return {key: cost for key, cost in found.items() if cost != Cost()}


def _cost(one: Cost, two: Cost) -> str:
    words = []
    for field in Cost.__struct_fields__:
        values = getattr(one, field), getattr(two, field)
        if values[0] != values[1]:
            words.append(f"{field} {values[0]} and {values[1]}")
    return ", ".join(words)
