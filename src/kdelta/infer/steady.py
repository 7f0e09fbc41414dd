# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a region was in a steady state: its iterations cost at its end what they cost before."""

import math

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.counts.model import RegionCounts

BLOCKS = 16
"""Iterations are judged by the means of so many blocks of them, in their order."""

LEAST_ITERATIONS = 4
"""Of fewer nothing can be said."""

RELEVANT = 0.005
"""Which differences of level matter, as a fraction of the mean."""

LEAST_INSNS = 2.0
"""And as instructions an iteration: more than that."""

CLEAR = 6.0
"""How many standard errors two levels must be apart. The blocks' noise is estimated from the
differences of neighbours (von Neumann), which a change of level hardly moves. Of series of 16
blocks with equal noise 0.1 % have a split that is so clear if it is normal, 1.6 % if exponential
(200,000 simulated of each).
"""

Floats = npt.NDArray[np.float64]


class Levels(msgspec.Struct, frozen=True):
    """Two levels of one region: own instructions an iteration before and from iteration `at` on."""

    before: float
    after: float
    at: int


def levels(region: RegionCounts) -> Levels | None:
    """Where the region's own instructions an iteration change their level; None if they are steady,
    or too few to tell.

    Of all splits of the blocks into a first and a last part it is the clearest one, if the means of
    its parts are `CLEAR` standard errors and `RELEVANT` of the mean apart. The iteration that is
    furthest from the median is left out: what one brings (a timer that ends in it) is no level.
    """
    own = np.array(region.iterations.own(), dtype=np.float64)
    if not can_tell(region) or not own.any():
        return None
    middle = float(np.median(own))
    own[np.argmax(np.abs(own - middle))] = middle
    edges = np.linspace(0, len(own), min(BLOCKS, len(own)) + 1).astype(int)
    means = np.add.reduceat(own, edges[:-1]) / np.diff(edges)
    found = max((_split(means, k) for k in range(1, len(means))), key=lambda one: one[0])
    clear, before, after, k = found
    if clear < CLEAR or abs(after - before) <= max(LEAST_INSNS, RELEVANT * float(own.mean())):
        return None
    at = int(edges[k])
    return Levels(float(own[:at].mean()), float(own[at:].mean()), at)


def can_tell(region: RegionCounts) -> bool:
    """Whether it has enough iterations that are known one by one."""
    return len(region.iterations) >= LEAST_ITERATIONS


def _split(means: Floats, k: int) -> tuple[float, float, float, int]:
    """How many standard errors the means before and from block k on are apart; both; and k."""
    before, after = float(means[:k].mean()), float(means[k:].mean())
    steps = np.concatenate([np.diff(means[:k]), np.diff(means[k:])])
    noise = math.sqrt(float(steps @ steps) / (2 * len(steps))) if len(steps) else 0.0
    error = noise * math.sqrt(1 / k + 1 / (len(means) - k))
    apart = abs(after - before)
    clear = apart / error if error else math.inf if apart else 0.0
    return clear, before, after, k
