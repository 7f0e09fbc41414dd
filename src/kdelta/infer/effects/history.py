# SPDX-License-Identifier: GPL-2.0-or-later
"""From kernel to kernel: which steps are real, which are placement, and which chance may have made.

The rules are those of a comparison; but nothing is run, so that what few runs leave to chance stays
open, unless runs of the operation alone are there already.
"""

import math
from collections.abc import Callable, Collection, Sequence

import msgspec

from kdelta.counts.model import RunCounts
from kdelta.infer.effects.chance import by_chance, left_open, of_relinked, with_operations
from kdelta.infer.effects.effects import Effects, OperationEffect, compare

LEFT_OPEN = "chance may have made it; kdelta compare of the two decides"
"""The reason of a verdict that the runs which are there do not decide."""

Runs = Sequence[RunCounts]
"""What runs of one kernel counted."""


class GeometricChange(msgspec.Struct, frozen=True):
    """By what factor the operations that two kernels have in common changed, as their geometric
    mean: the figure, and the ends that their intervals make together.
    """

    value: float
    low: float
    high: float

    @property
    def exact(self) -> bool:
        """Whether there is no spread in it."""
        return self.low == self.high


def step_effects(
    base: Runs,
    other: Runs,
    alone: Callable[[str], tuple[Runs, Runs]] = lambda _: ((), ()),
    relinked: Collection[str] = (),
) -> Effects:
    """The effects from one kernel to the next, with verdicts that chance did not make.

    alone: runs of an operation alone, of both kernels, as far as there are any. relinked: the
    regions whose code is the same, only relinked.
    """
    effects = of_relinked(compare(base, other), relinked)
    doubtful = by_chance(effects, base, other)
    told = [one for name in doubtful for one in _told(name, *alone(name))]
    effects = with_operations(effects, told, base, other)
    return left_open(effects, set(doubtful) - {one.name for one in told}, LEFT_OPEN)


def _told(name: str, base: Runs, other: Runs) -> list[OperationEffect]:
    """The operation's effect, if its runs alone have it."""
    if not base or not other:
        return []
    effects = compare(base, other)
    doubtful = by_chance(effects, base, other)
    return [
        one
        for one in effects.operations
        if one.name == name and one.costs is not None and name not in doubtful
    ]


def overall_change(effects: Effects) -> GeometricChange | None:
    """Over all operations that both have and that cost anything; None if there are none."""
    costs = [one.costs.insns for one in effects.operations if one.costs is not None]
    costs = [one for one in costs if one.base.value > 0 and one.other.value > 0]
    if not costs:
        return None

    def mean(ratios: Sequence[float]) -> float:
        # An interval that reaches down to nothing has no logarithm.
        if min(ratios) <= 0:
            return 0.0
        return math.exp(math.fsum(map(math.log, ratios)) / len(ratios))

    ends = [
        [float(1 + end / one.base.value) for one in costs for end in [getattr(one.effect, which)]]
        for which in ("value", "low", "high")
    ]
    return GeometricChange(*map(mean, ends))
