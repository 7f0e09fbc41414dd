# SPDX-License-Identifier: GPL-2.0-or-later
"""From kernel to kernel: which steps are real, which are placement, and which chance may have made.

The verdicts are those of a comparison, by the same functions; but nothing is run, so that what few
runs leave to chance stays open, unless runs of the operation alone are there already.
"""

import math
from collections.abc import Callable, Collection, Sequence

import msgspec

from kdelta.infer.effects.chance import DifferingCode, Runs, first_verdicts, settled
from kdelta.infer.effects.effects import Effects

LEFT_OPEN = "chance may have made it; kdelta compare of the two decides"
"""The reason of a verdict that the runs which are there do not decide."""


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
    *,
    differing: Callable[[], DifferingCode] = dict,
    unchanged: Callable[[], Collection[str]] = tuple,
    alike: bool = False,
) -> Effects:
    """Return the effects from one kernel to the next, with verdicts that chance did not make.

    alone: runs of an operation alone, of both kernels, as far as there are any. relinked: the
    regions whose code is the same, only relinked. differing, unchanged: see `first_verdicts`.
    alike: see `compare_runs`.
    """
    first = first_verdicts(
        base, other, relinked, differing=differing, unchanged=unchanged, alike=alike
    )
    more = {name: alone(name) for name in first.runs}
    return settled(first, more, base, other, LEFT_OPEN)


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
