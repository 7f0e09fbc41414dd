# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs of one operation, some of which a timer interrupts."""

from collections.abc import Sequence

from kdelta.counts.model import Context, Cost, FunctionCost, Iterations, RegionCounts, RunCounts

ITERATIONS = 100
TIMER = 5000
"""What an interrupt executes itself."""


def ran(own: Sequence[int], interrupts: Sequence[int] = ()) -> RunCounts:
    """A run of one region, whose iterations execute so much."""
    theirs = [*interrupts, *[0] * len(own)][: len(own)]
    costs: list[tuple[Context, str, int]] = [
        ("own", "f", sum(own)),
        ("interrupts", "tick", sum(theirs)),
    ]
    functions = tuple(
        FunctionCost(context, "kernel", name, Cost(insns))
        for context, name, insns in costs
        if insns
    )
    none = (0,) * len(own)
    rows = Iterations(none, tuple(own), tuple(theirs), none)
    return RunCounts((RegionCounts("op", rows, functions, 10**6),))


def steady(insns: int, more: int = 0, timer: int = 0) -> RunCounts:
    """Each iteration executes `insns`, one of them `more`; a timer ends in that one."""
    return ran([insns + more, *[insns] * (ITERATIONS - 1)], [timer])
