# SPDX-License-Identifier: GPL-2.0-or-later
"""How far the intervals of means reach: Student's t distribution; and of many verdicts at once, so
that few of those that are given are wrong, however many are asked for.
"""

import functools
import math
from collections.abc import Sequence

_MOST_DEGREES = 1000
"""With more, those of 1000 are taken: the interval is then too wide, by 0.1 % at the most."""


def upper_tail(t: float, degrees: int) -> float:
    """The probability of more than t. Below about 1e-14 it is rounded, perhaps to zero.

    Exact finite series for whole degrees of freedom: Abramowitz and Stegun, Handbook of
    Mathematical Functions (1964), 26.7.3 and 26.7.4. Raises ValueError for less than one degree.
    """
    if degrees < 1:
        raise ValueError("no degree of freedom, no distribution")
    if t < 0:
        return 1 - upper_tail(-t, degrees)
    if math.isinf(t):
        return 0.0
    degrees = min(degrees, _MOST_DEGREES)
    angle = math.atan2(t, math.sqrt(degrees))
    square = math.cos(angle) ** 2
    odd = degrees % 2
    term = math.cos(angle) if odd else 1.0
    terms = [] if degrees == 1 else [term]
    for factor in range(2 if odd else 1, degrees - 2, 2):
        term *= square * factor / (factor + 1)
        terms.append(term)
    within = math.sin(angle) * math.fsum(terms)
    if odd:
        within = 2 / math.pi * (angle + within)
    return max(0.0, (1 - within) / 2)


@functools.cache
def two_sided(error: float, degrees: int) -> float:
    """How many standard errors an interval reaches to both sides that misses with probability
    `error`; raises ValueError unless that lies between 0 and 1.
    """
    if not 0 < error < 1:
        raise ValueError(f"an error of {error} is no probability")
    low, high = 0.0, 1.0
    while upper_tail(high, degrees) > error / 2:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if upper_tail(middle, degrees) > error / 2 else (low, middle)
    return high


FALSE_DISCOVERIES = 0.05
"""Of all verdicts that rest on draws, the share that may be wrong in the mean."""


def count_discoveries(chances: Sequence[float], rate: float = FALSE_DISCOVERIES) -> int:
    """How many of the smallest chances of error may be taken so that, in the mean, no more than
    `rate` of those taken are wrong.

    That is the largest R for which the R-th smallest is at most R x rate / n: Y. Benjamini and
    Y. Hochberg, Controlling the False Discovery Rate, J. R. Stat. Soc. B 57 (1995). It holds for
    independent tests, and for ones that depend on each other positively, as regions do that are
    replayed under the same layouts.
    """
    ordered = sorted(chances)
    return max(
        (
            rank
            for rank, chance in enumerate(ordered, start=1)
            if chance <= error_of_each(rank, len(ordered), rate)
        ),
        default=0,
    )


def error_of_each(taken: int, n: int, rate: float = FALSE_DISCOVERIES) -> float:
    """With what error the interval of each is made when `taken` of n were, so that in the mean no
    more than `rate` of the intervals of those taken miss.

    That is R x rate / n: Y. Benjamini and D. Yekutieli, False Discovery Rate-Adjusted Multiple
    Confidence Intervals, J. Am. Stat. Assoc. 100 (2005). With none taken it is the error at which
    one would have been.
    """
    return rate * (max(taken, 1) / max(n, 1))
