# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds counts of runs that never took place, small enough to check by hand."""

from collections.abc import Mapping

from kdelta.counts.model import (
    Context,
    Cost,
    FunctionCost,
    Iterations,
    RegionCounts,
    RunCounts,
    is_kernel,
)
from kdelta.infer.effects.costs import Costs
from kdelta.infer.effects.estimate import Estimate

Function = tuple[Context, str, str]


def own(name: str, origin: str = "kernel") -> Function:
    return "own", origin, name


def user(name: str, origin: str = "syscalls") -> Function:
    return "own", origin, name


def interrupts(name: str) -> Function:
    return "interrupts", "kernel", name


def other(name: str) -> Function:
    return "other", "kernel", name


def region(
    name: str,
    functions: Mapping[Function, int | Cost],
    iterations: int = 100,
    clock_ticks: int | None = None,
    calls: Mapping[str, tuple[int, str] | tuple[()]] | None = None,
) -> RegionCounts:
    """A region whose functions cost that much in the whole; its iterations are quite even. calls:
    how often functions were called, and by which one alone.
    """
    rows = tuple(
        FunctionCost(
            *key, Cost(cost) if isinstance(cost, int) else cost, *(calls or {}).get(key[2], ())
        )
        for key, cost in functions.items()
    )
    sums = [0, 0, 0, 0]
    for row in rows:
        where = {"own": 1 if is_kernel(row.origin) else 0, "interrupts": 2, "other": 3}
        sums[where[row.context]] += row.cost.insns
    return RegionCounts(
        name=name,
        iterations=Iterations(*(even(total, iterations) for total in sums)),
        functions=rows,
        clock_ticks=sum(sums) if clock_ticks is None else clock_ticks,
    )


def even(total: int, parts: int) -> tuple[int, ...]:
    return tuple(total * (index + 1) // parts - total * index // parts for index in range(parts))


def run(*regions: RegionCounts, warnings: tuple[str, ...] = ()) -> RunCounts:
    return RunCounts(regions, warnings)


def executed_of(costs: Costs) -> tuple[dict[str, Estimate], dict[str, Estimate]]:
    """What the base and the other kernel execute an iteration, by the names of the prices."""
    amounts = {"insns": costs.insns, "string_bytes": costs.string_bytes, **costs.specials}
    return (
        {name: quantity.base for name, quantity in amounts.items()},
        {name: quantity.other for name, quantity in amounts.items()},
    )
