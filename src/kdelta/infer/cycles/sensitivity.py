# SPDX-License-Identifier: GPL-2.0-or-later
"""How much depends on where a region's code lies: the distribution of its cost over layouts, and
whether a cache's replacement policy decides which of them are good.
"""

import msgspec
import numpy as np

from kdelta.infer.cycles.ensembles import Floats, Interval, RegionCost, box, weigh, weigh_shipped
from kdelta.infer.cycles.prices import Prices

QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)

ALIKE = 0.8
"""Rank correlation from which on both policies count as preferring the same layouts."""


class Distribution(msgspec.Struct, frozen=True):
    """A figure over random layouts, and in the one as linked: `percentile` of the layouts have less
    (of those that have the same, half), from 0 to 100.
    """

    least: float
    quarter: float
    median: float
    three_quarters: float
    most: float
    mean: float
    as_linked: float
    percentile: float

    @property
    def varies(self) -> bool:
        """Whether any two layouts differ, the one as linked among them."""
        return not self.least == self.most == self.as_linked


class CycleRange(msgspec.Struct, frozen=True):
    """Model cycles an iteration, each from the lowest prices to the highest.

    executed: what is executed, without misses. The others are with them, for the layout as linked
    and for those at the quantiles of random ones, at either end of the prices alone. percentile: of
    the layout as linked, with misses exposed. swing: from the least to the most costly layout, as a
    fraction of the median one, with misses exposed and all else at its lowest price: at most so
    much depends on placement.
    """

    executed: Interval
    as_linked: Interval
    least: Interval
    quarter: Interval
    median: Interval
    three_quarters: Interval
    most: Interval
    percentile: float
    swing: float


def distribution(draws: Floats, shipped: float) -> Distribution:
    """The distribution of a figure, of shape (n_layouts,); ValueError without layouts."""
    if not len(draws):
        raise ValueError("no layout, no distribution")
    least, quarter, median, three_quarters, most = np.quantile(draws, QUANTILES).tolist()
    return Distribution(
        least=least,
        quarter=quarter,
        median=median,
        three_quarters=three_quarters,
        most=most,
        mean=float(draws.mean()),
        as_linked=shipped,
        percentile=percentile(draws, shipped),
    )


def percentile(draws: Floats, value: float) -> float:
    """How many per cent of the draws are less, those that are the same counting half."""
    less, same = np.count_nonzero(draws < value), np.count_nonzero(draws == value)
    return float(100 * (less + same / 2) / len(draws))


def cycle_range(cost: RegionCost, prices: Prices) -> CycleRange:
    """What a region costs over its layouts, in model cycles."""
    whole = box(prices, tuple(cost.ensemble.misses))
    drawn, shipped = weigh(cost, whole), weigh_shipped(cost, whole)
    executed = Interval(
        float((drawn.amounts * whole.low).sum()), float((drawn.amounts * whole.high).sum())
    )
    hidden, exposed = drawn.draws[:, 0], drawn.draws[:, -1]
    ends = [
        Interval(executed.low + low, executed.high + high)
        for low, high in zip(
            np.quantile(hidden, QUANTILES).tolist(),
            np.quantile(exposed, QUANTILES).tolist(),
            strict=True,
        )
    ]
    median = executed.low + float(np.median(exposed))
    return CycleRange(
        executed=executed,
        as_linked=Interval(
            executed.low + float(shipped.mean[0]), executed.high + float(shipped.mean[-1])
        ),
        least=ends[0],
        quarter=ends[1],
        median=ends[2],
        three_quarters=ends[3],
        most=ends[4],
        percentile=percentile(exposed, float(shipped.mean[-1])),
        swing=float(np.ptp(exposed)) / median if median else 0.0,
    )


class Replaced(msgspec.Struct, frozen=True):
    """Misses of one kind, an iteration, over the same random layouts: under the CPU's policy, and
    if what was least recently used left. correlation: of the ranks of layouts under both, from -1
    to 1; None where all layouts are alike under one of them.
    """

    policy: str
    own: Distribution
    lru: Distribution
    correlation: float | None

    @property
    def hangs(self) -> bool:
        """Whether it depends on the policy which layouts are good."""
        return self.correlation is not None and self.correlation < ALIKE


def replaced(own: RegionCost, lru: RegionCost, policies: dict[str, str]) -> dict[str, Replaced]:
    """Of each kind of misses that `policies` names (kind -> the CPU's policy), what it makes. Both
    costs are of the same layouts; ValueError if they are not.
    """
    if own.ensemble.draws != lru.ensemble.draws:
        raise ValueError("the policies were not asked about the same layouts")
    return {
        kind: Replaced(
            policy,
            distribution(own.ensemble.misses[kind], own.shipped[kind]),
            distribution(lru.ensemble.misses[kind], lru.shipped[kind]),
            rank_correlation(own.ensemble.misses[kind], lru.ensemble.misses[kind]),
        )
        for kind, policy in policies.items()
        if kind in own.ensemble.misses
    }


def rank_correlation(one: Floats, other: Floats) -> float | None:
    """Spearman's, equal values having the mean of their ranks; None if all of either are equal.

    C. Spearman: The proof and measurement of association between two things, American Journal of
    Psychology 15 (1904).
    """
    ranks = [_ranks(one), _ranks(other)]
    if any(len(rank) == 0 or not np.ptp(rank) for rank in ranks):
        return None
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(values: Floats) -> Floats:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    mean: Floats = np.cumsum(counts) - (counts - 1) / 2
    return mean[place]
