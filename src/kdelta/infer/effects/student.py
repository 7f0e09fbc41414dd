# SPDX-License-Identifier: GPL-2.0-or-later
"""Student's t distribution, as far as intervals of a mean need it."""

import functools
import math

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
        if upper_tail(middle, degrees) > error / 2:
            low = middle
        else:
            high = middle
    return high
