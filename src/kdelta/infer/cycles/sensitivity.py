# SPDX-License-Identifier: GPL-2.0-or-later
"""How much depends on where a region's code lies: the distribution of its cost over layouts."""

import msgspec
import numpy as np

from kdelta.infer.cycles.ensembles import Floats, Interval, RegionCost, box, weigh, weigh_shipped
from kdelta.infer.cycles.prices import Prices

QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)


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
    shipped: float
    percentile: float

    @property
    def varies(self) -> bool:
        """Whether any two layouts differ, the one as linked among them."""
        return not self.least == self.most == self.shipped


class CycleRange(msgspec.Struct, frozen=True):
    """Model cycles an iteration, each from the lowest prices to the highest.

    executed: what is executed, without misses. The others are with them, for the layout as linked
    and for those at the quantiles of random ones, at either end of the prices alone. percentile: of
    the layout as linked, with misses exposed. swing: from the least to the most costly layout, as a
    fraction of the median one, with misses exposed and all else at its lowest price: at most so
    much depends on placement.
    """

    executed: Interval
    shipped: Interval
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
        shipped=shipped,
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
        shipped=Interval(
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
