# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a region was in a steady state: its iterations cost at its end what they cost before."""

import math
from functools import cache

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.counts.model import RegionCounts

BLOCKS = 16
"""Iterations are judged by the means of so many blocks of them, in their order."""

LEAST_ITERATIONS = 4
"""Of fewer nothing can be said."""

LEAST_BLOCKS = 2
"""A stretch within a region has another level only if it is at least so long."""

RELEVANT = 0.005
"""Which differences of level matter, as a fraction of the mean."""

LEAST_INSNS = 2.0
"""And as instructions an iteration: more than that."""

CLEAR = 6.0
"""How many standard errors two levels must be apart. The blocks' noise is estimated from the
differences of neighbours (von Neumann), which a change of level hardly moves. Of series of 16
blocks with equal noise 0.13 % have a split or a stretch that is so clear if it is normal, 2.2 % if
exponential (60,000 simulated of each).
"""

CLEAR_WITHIN = 8.0
"""And a stretch within the region, since there are more to choose from."""

LONG = 4 * BLOCKS
"""From so many iterations on, one is only a part of a block."""

MORE_THAN_TWO = 2.1
"""How many times what one iteration brings a level has to bring: of a periodic cost a block may
have one more than the others, and another one in place of the iteration that does not count.
"""

ROUNDING = 1e-12
"""Sums of squares that are a smaller part of what they were subtracted from are zero."""

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]


class Levels(msgspec.Struct, frozen=True):
    """Two levels of one region, own instructions an iteration: `before`, and `after` from iteration
    `at` on. With an `end`, it is `before` again from that iteration on.
    """

    before: float
    after: float
    at: int
    end: int | None = None

    def __str__(self) -> str:
        """Both levels, and where one becomes the other."""
        until = "on" if self.end is None else f"to {self.end}"
        return f"{self.before:.0f} instructions, from iteration {self.at} {until} {self.after:.0f}"


def levels(region: RegionCounts, least_insns: float = math.inf) -> Levels | None:
    """Return where the region's own instructions an iteration have another level; None if
    they are steady, or too few to know.

    Of all stretches of blocks at the end whose mean is `CLEAR` standard errors from that of the
    others, and differs by what is relevant or by `least_insns`, it is the clearest; if there is
    none, of those within the region (`CLEAR_WITHIN`). The iteration that is furthest from the
    median does not count: what one brings (a timer that ends in it) is no level.
    """
    own = _own(region)
    if not has_iterations(region) or not own.any():
        return None
    return _levels(own, float(own.mean()), least_insns)


def is_steadily_apart(base: RegionCounts, other: RegionCounts, least_insns: float) -> bool:
    """Return whether a region costs as much more than another at its end as it did before, whatever
    levels both have; of two regions with as many iterations, one for one.
    """
    apart = _apart(base, other)
    return apart is not None and _levels(apart, float(_own(base).mean()), least_insns) is None


def _apart(base: RegionCounts, other: RegionCounts) -> Floats | None:
    """By how much iterations of another region cost more, evened; None if that is not known."""
    if not has_iterations(base) or len(base.iterations) != len(other.iterations):
        return None
    ours, its = (np.array(one.iterations.own(), dtype=np.float64) for one in (base, other))
    return _evened(its - ours)


def _levels(own: Floats, mean: float, least_insns: float) -> Levels | None:
    """Where a series has another level than elsewhere. mean: of what is relevant, a part."""
    edges = _edges(len(own))
    relevant = max(LEAST_INSNS, RELEVANT * mean)
    furthest = float(np.abs(own - np.median(own)).max())
    single = furthest * BLOCKS / len(own) if len(own) >= LONG else 0.0
    found = _clearest(_means(own, edges), min(relevant, least_insns), single)
    if found is None:
        return None
    start, stop = int(edges[found[0]]), int(edges[found[1]])
    before = np.concatenate([own[:start], own[stop:]]).mean()
    end = None if stop == len(own) else stop
    return Levels(float(before), float(own[start:stop].mean()), start, end)


def standard_errors(region: RegionCounts, less: RegionCounts | None = None) -> tuple[float, float]:
    """Return by how much the mean and the median of the own instructions of its iterations are
    uncertain: from those of its blocks, so that iterations that are like their neighbours count as
    few. less: a region whose iterations are subtracted, one for one.
    """
    apart = _apart(less, region) if less else None
    own = _own(region) if apart is None else apart
    if len(own) < 2 or np.ptp(own) <= 1:  # an instruction more in some of them is no noise
        return 0.0, 0.0
    edges = _edges(len(own))
    medians = np.array([np.median(block) for block in np.split(own, edges[1:-1])])
    mean, median = (
        float(of_blocks.std(ddof=1)) / math.sqrt(len(of_blocks))
        for of_blocks in (_means(own, edges), medians)
    )
    return mean, median


def once(region: RegionCounts) -> float:
    """How many own instructions a region has once: those that are in no iteration, and by how many
    the first and the last iteration differ from the median.
    """
    own = np.array(region.iterations.own(), dtype=np.float64)
    if not len(own):
        return 0.0
    outside = region.cost("own").insns - float(own.sum())
    return abs(outside) + float(np.abs(own[[0, -1]] - np.median(own)).sum())


def has_iterations(region: RegionCounts) -> bool:
    """Whether it has enough iterations that are known one by one."""
    return len(region.iterations) >= LEAST_ITERATIONS


def _own(region: RegionCounts) -> Floats:
    """Own instructions by iteration, evened unless there are too few to know."""
    own = np.array(region.iterations.own(), dtype=np.float64)
    return _evened(own) if has_iterations(region) else own


def _evened(own: Floats) -> Floats:
    """A series in which the one that is furthest from the median is as its neighbour."""
    furthest = int(np.argmax(np.abs(own - np.median(own))))
    own[furthest] = own[furthest - 1 if furthest else 1]
    return own


def _edges(iterations: int) -> Numbers:
    """Where the blocks of so many iterations begin, and the last one ends."""
    return np.linspace(0, iterations, min(BLOCKS, iterations) + 1).astype(np.intp)


def _means(own: Floats, edges: Numbers) -> Floats:
    means: Floats = np.add.reduceat(own, edges[:-1]) / np.diff(edges)
    return means


def _clearest(means: Floats, relevant: float, single: float) -> tuple[int, int] | None:
    """The first block of the clearest stretch, and the block after it; None if none is clear.

    single: by how much one iteration moves the mean of a block, at most. Where blocks are as long
    as some periods of a cost, one of them has that cost once more or less than the others.
    """
    first, last, inner = _stretches(len(means))
    inside_blocks = last - first
    outside_blocks = len(means) - inside_blocks
    sums = np.concatenate([[0.0], means.cumsum()])
    inside = (sums[last] - sums[first]) / inside_blocks
    apart = np.abs(inside - (sums[-1] - sums[last] + sums[first]) / outside_blocks)
    squares = np.diff(means) ** 2
    padded = np.concatenate([[0.0], squares, [0.0]])  # the ends are steps from nothing
    left = squares.sum() - padded[first] - padded[last]
    left[left <= ROUNDING * squares.sum()] = 0.0
    steps = np.maximum(len(squares) - inner, 1)
    error = np.sqrt(left / (2 * steps) * (1 / inside_blocks + 1 / outside_blocks))
    clear = np.divide(apart, error, out=np.full_like(apart, np.inf), where=error > 0)
    of_one = MORE_THAN_TWO * single / np.minimum(inside_blocks, outside_blocks)
    clear[apart <= np.maximum(relevant, of_one)] = 0.0
    for kind, least in ((inner == 1, CLEAR), (inner == 2, CLEAR_WITHIN)):
        best = int(np.argmax(np.where(kind, clear, 0.0)))
        if kind[best] and clear[best] >= least:
            return int(first[best]), int(last[best])
    return None


@cache
def _stretches(blocks: int) -> tuple[Numbers, Numbers, Numbers]:
    """All stretches of so many blocks: first block, block after the last, and how many of its ends
    lie within the region.
    """
    found = [
        (first, last, (first > 0) + (last < blocks))
        for first in range(blocks)
        for last in range(first + 1, blocks + 1)
        if _may_be(first, last, blocks)
    ]
    first, last, inner = np.array(found, dtype=np.intp).T
    return first, last, inner


def _may_be(first: int, last: int, blocks: int) -> bool:
    """Whether that is a stretch to look at: at the end, or long enough within the region. (One at
    the start is the same split as one at the end.)
    """
    if last == blocks:
        return first > 0
    return first > 0 and min(last - first, blocks - (last - first)) >= LEAST_BLOCKS
