# SPDX-License-Identifier: GPL-2.0-or-later
"""A budget of further runs, counted in what guests execute: equal input gives equal output on every
host, with any number of guests at a time.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import msgspec

from kdelta.counts.model import RegionCounts, RunCounts, merged_regions, only_region

INSNS_A_SECOND = 20_000_000
"""Counted instructions of a run for each second of a processor that it takes, its warm-up and its
evaluation included: docs/results.md has what was measured."""

INSNS_A_START = 3_000_000
"""What the start of a guest takes besides."""


class RunCost(msgspec.Struct, frozen=True):
    """What runs execute: counted instructions, and how often a guest starts."""

    insns: int = 0
    starts: int = 0

    def __add__(self, other: "RunCost") -> "RunCost":
        """Return both."""
        return RunCost(self.insns + other.insns, self.starts + other.starts)

    def __mul__(self, times: int) -> "RunCost":
        """Return it so many times."""
        return RunCost(self.insns * times, self.starts * times)

    @property
    def whole(self) -> int:
        """Return the sum, a start as instructions."""
        return self.insns + INSNS_A_START * self.starts

    @property
    def seconds(self) -> int:
        """Return the seconds of a processor that it takes, rounded up."""
        return math.ceil(Fraction(self.whole, INSNS_A_SECOND))


def cost_of_runs(runs: Sequence[RunCounts]) -> RunCost:
    """Return what these runs cost, with a guest for each of their regions, and more for what these
    leave to other tasks.
    """
    found = [list(merged_regions(run).values()) for run in runs]
    return sum((_cost_of(regions) for regions in found), RunCost())


def cost_of_operation(name: str, runs: Sequence[RunCounts]) -> RunCost:
    """Return what one more run of an operation costs, as the most expensive of these runs."""
    found = [list(merged_regions(only_region(run, name)).values()) for run in runs]
    costs = [_cost_of(regions) for regions in found if regions]
    return max(costs, key=lambda cost: cost.whole, default=RunCost(0, 1))


def _cost_of(regions: Sequence[RegionCounts]) -> RunCost:
    """What a run of these regions costs: one that leaves work is executed twice, and then there is
    a guest that leaves none.
    """
    left = [one for one in regions if one.left]
    insns = sum(one.executed_insns() for one in (*regions, *left))
    return RunCost(insns, len(regions) + len(left) + bool(left))


class Budget:
    """What a study may still spend on runs that it chooses itself; None for `seconds` is no end."""

    def __init__(self, seconds: Fraction | None = None) -> None:
        """Raises ValueError for less than nothing."""
        if seconds is not None and seconds < 0:
            raise ValueError(f"a budget of {seconds} s")
        self._left = None if seconds is None else seconds * INSNS_A_SECOND
        self.refused = RunCost()

    @property
    def has_end(self) -> bool:
        """Return whether anything can be refused."""
        return self._left is not None

    def spend(self, cost: RunCost) -> None:
        """Take this off, whether or not it is there."""
        if self._left is not None:
            self._left -= cost.whole

    def affords(self, cost: RunCost) -> bool:
        """Take this off and return True, if it is there or nothing; else note the refusal."""
        if cost.whole and self._left is not None and cost.whole > self._left:
            self.refused += cost
            return False
        self.spend(cost)
        return True
