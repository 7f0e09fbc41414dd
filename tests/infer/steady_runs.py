# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs of one operation, with a timer or without."""

from kdelta.counts.model import (
    Context,
    Cost,
    FunctionCost,
    Iterations,
    RegionCounts,
    RunCounts,
)

ITERATIONS = 100
TIMER = 5000


def steady(insns: int, more: int = 0, timer: int = 0, lookups: int = 0) -> RunCounts:
    """Each iteration executes `insns`, one of them `more`; a timer ends in that one."""
    rows: list[tuple[Context, str, int]] = [
        ("own", "do_open", insns * ITERATIONS + more),
        ("own", "search_extable", lookups),
        ("interrupts", "tick", timer),
    ]
    own = (insns + more, *[insns] * (ITERATIONS - 1))
    none = (0,) * ITERATIONS
    return RunCounts(
        (
            RegionCounts(
                "open",
                Iterations(none, own, (timer, *none[1:]), none),
                tuple(FunctionCost(c, "kernel", name, Cost(n)) for c, name, n in rows if n),
                10**6,
            ),
        )
    )
