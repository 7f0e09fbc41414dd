# SPDX-License-Identifier: GPL-2.0-or-later
"""Means over regions with their intervals, and whether parts add up to a whole.

Where each run's regions are known, a kernel's mean is a figure of each run, and has a range over
runs as a region has (`run_means`). Where only intervals of regions are known, they add: the mean
reaches as far as if all of its regions were off in the same direction. That is wide, since most of
them are not, and needs no assumption of how they depend on each other.
"""

import enum
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from kdelta.infer.effects.estimate import ZERO, Estimate

MEAN = "mean over regions"
"""Stands for a region where effects by region have their mean as well, in per cent."""

STEADY = Fraction(1, 100)
"""The part of a region's cost by which runs of one kernel may vary for the region to be in a mean.
One of 44 regions that varies by 1 % moves the mean by 0.02 %."""

NARROW = Fraction(2, 1000)
"""How wide the interval of a remainder may be, as a part of the cost in the base, for zero in it to
mean that parts add up."""


class Adds(enum.StrEnum):
    """What a remainder says: whether parts add up to the whole."""

    ADDS_UP = "adds up"
    """Its interval holds zero, and is narrow."""
    LEFT_OVER = "does not add up"
    """Its interval excludes zero."""
    CANNOT_TELL = "cannot tell"
    """Its interval holds zero, and much else."""


def is_seen(effect: Estimate) -> bool:
    """Whether the interval of an effect excludes zero."""
    return not effect.low <= 0 <= effect.high


def reach(effect: Estimate) -> Fraction:
    """How far the interval reaches from the figure, on the side where it reaches farther."""
    return max(effect.value - effect.low, effect.high - effect.value)


def bound(effect: Estimate) -> Fraction:
    """How large an effect may be, in either direction, as far as its interval says."""
    return max(abs(effect.low), abs(effect.high))


def variation(cost: Estimate) -> Fraction:
    """The range of a kernel's runs as a part of their mean; 1 where that is zero and they vary."""
    wide = cost.high - cost.low
    if not cost.value:
        return Fraction(bool(wide))
    return wide / abs(cost.value)


def is_steady(cost: Estimate) -> bool:
    """Whether runs of one kernel vary by so little that the region may be in a mean."""
    return variation(cost) <= STEADY


def widest(costs: Iterable[Estimate]) -> Estimate:
    """The cost in the kernel whose runs vary most; ValueError without any."""
    return max(costs, key=variation)


def adds(remainder: Estimate, base: Estimate) -> Adds:
    """What the remainder of a region says, of which `base` is the cost in the base."""
    if is_seen(remainder):
        return Adds.LEFT_OVER
    narrow = remainder.high - remainder.low <= NARROW * abs(base.value)
    return Adds.ADDS_UP if narrow else Adds.CANNOT_TELL


def mean_percent(effects: Mapping[str, Estimate], costs: Mapping[str, Estimate]) -> Estimate | None:
    """The mean over regions of an effect in per cent of its cost; None without a region.

    effects: by region; a region without one counts as 0, so that means add up over parts. costs: of
    the regions that are in the mean, none of them zero.
    """
    if not costs:
        return None
    parts = [(effects[name], abs(cost.value)) for name, cost in costs.items() if name in effects]
    value, low, high = (
        100 * sum((getattr(one, end) / cost for one, cost in parts), ZERO) / len(costs)
        for end in ("value", "low", "high")
    )
    return Estimate(value, low, high, min((one.n for one, _ in parts), default=0))


def run_means(
    runs: Mapping[str, Sequence[Fraction]], costs: Mapping[str, Estimate]
) -> tuple[Fraction, ...]:
    """What a kernel costs in each run, in per cent of the base, over regions; none if regions have
    not one figure for each of them.

    runs: by region the cost in each run. costs: of the regions that are in the mean, in the base.
    """
    columns = [[100 * one / abs(cost.value) for one in runs.get(name, ())]
               for name, cost in costs.items()]  # fmt: skip
    if not columns or not columns[0] or len({len(column) for column in columns}) > 1:
        return ()
    return tuple(sum(row, ZERO) / len(row) for row in zip(*columns, strict=True))


def share_percent(part: Estimate, whole: Estimate) -> Estimate | None:
    """A part in per cent of the whole, from its smallest to its largest quotient; None where the
    whole may be zero.
    """
    if not is_seen(whole):
        return None
    ends = [100 * one / other for one in (part.low, part.high) for other in (whole.low, whole.high)]
    value = 100 * part.value / whole.value
    return Estimate(value, min(ends), max(ends), min(part.n, whole.n))


def total(parts: Iterable[Estimate], n: int) -> Estimate:
    """The sum of figures, whose ranges add; `n` runs for a sum of none."""
    every = list(parts)
    return Estimate(
        sum((one.value for one in every), ZERO),
        sum((one.low for one in every), ZERO),
        sum((one.high for one in every), ZERO),
        min((one.n for one in every), default=n),
    )
