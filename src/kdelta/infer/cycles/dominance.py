# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether one kernel has no more of anything that is counted, so that no price matters."""

from collections.abc import Iterable

from kdelta.infer.cycles.ensembles import RegionCost
from kdelta.infer.cycles.placement_model import Bounds
from kdelta.infer.cycles.prices import Prices
from kdelta.infer.effects.estimate import Estimate


def nothing_grows(base: RegionCost, other: RegionCost, misses: Iterable[Bounds]) -> bool:
    """Return whether the other kernel has no more of anything that is counted.

    Model cycles are a sum of counts times prices, and no price is negative: so they cannot grow
    either, whatever the prices are.

    misses: the effect on each kind of miss that has a price, with the interval that is shown. Its
    whole interval must lie at or below zero, and so must the effect on all that is executed, by the
    sum of both ranges over the runs: special instructions without a price and misses of data, too.
    """
    names = base.executed.keys() | other.executed.keys()
    return all(_most(base.amount(name), other.amount(name)) <= 0 for name in names) and all(
        effect.high <= 0 for effect in misses
    )


def unpriced_changes(base: RegionCost, other: RegionCost, prices: Prices) -> tuple[str, ...]:
    """Return the special instructions without a price whose number changes by more than the runs'
    spread.
    """
    names = sorted((base.executed.keys() | other.executed.keys()) - prices.executed.keys())
    return tuple(
        name
        for name in names
        if _most(base.amount(name), other.amount(name)) < 0
        or _most(other.amount(name), base.amount(name)) < 0
    )


def _most(base: Estimate, other: Estimate) -> float:
    """By how much it grows at most; the path's spread counts as in a contrast of costs."""
    reach = (base.high - base.low) + (other.high - other.low)
    return float(other.value - base.value + reach)
