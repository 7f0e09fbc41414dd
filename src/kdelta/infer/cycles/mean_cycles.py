# SPDX-License-Identifier: GPL-2.0-or-later
"""One kernel's model cycles without its placement, as an estimate like that of a path.

A search over many kernels has to add and subtract them, so each has one figure for itself: the mean
over random layouts, with all prices in the middle of their intervals. Whether two kernels differ at
all prices is asked of the two together (placement.py).
"""

import math
from fractions import Fraction

import numpy as np

from kdelta.infer.cycles.ensembles import RegionCost, box, weigh
from kdelta.infer.cycles.prices import Prices
from kdelta.infer.effects.estimate import Estimate

ERRORS = 1.4
"""How many standard errors the interval reaches to either side. An effect's interval adds up the
ranges of both kernels, so two equal kernels part where they are four standard errors of their
difference apart: 2 * 2 * 1.4 is 4 times the root of 2."""


_AS_RUNS = 2
"""Its interval is none of the least and the most of many runs, which `effect_between` distinguishes
by their order, but one whose reach it is to add to the other's."""


def mean_cycles(cost: RegionCost, prices: Prices) -> Estimate:
    """The model cycles of a region an iteration. ValueError for fewer than two layouts."""
    layouts = len(cost.ensemble.draws)
    if layouts < 2:
        raise ValueError(f"{layouts} layouts say nothing of the spread over layouts")
    whole = box(prices, tuple(cost.ensemble.misses))
    weighed = weigh(cost, whole)
    price = (whole.low + whole.high) / 2
    # Linear in the prices: the mean of a box's corners is its middle.
    draws = weighed.draws.mean(axis=1)
    value = float(weighed.amounts @ price + draws.mean())
    error = float(draws.std(ddof=1)) / math.sqrt(layouts)
    reach = ERRORS * error + float(weighed.spread @ np.abs(price)) / 2
    return Estimate(Fraction(value), Fraction(value - reach), Fraction(value + reach), _AS_RUNS)
