# SPDX-License-Identifier: GPL-2.0-or-later
"""What a region costs over many layouts, in model cycles, when prices are intervals.

A cost is linear in the prices: executed amounts, known or with a spread, and misses, of which each
layout is an independent draw. All that is asked of two kernels is asked of a contrast: so many
times one's mean cost, less so many times the other's. The lower end of a contrast's confidence
interval is a linear function of the prices less so many standard errors, which are a norm of a
linear function: it is concave, so its least value over all prices of a box is at a corner.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.infer.cycles.prices import Prices, believed, priced_kinds
from kdelta.infer.effects.estimate import ZERO, Estimate

DEFAULT_LAYOUTS = 128

Floats = npt.NDArray[np.float64]

_STEPS = 60
_ZERO = 1e-13
_LARGEST_RATIO = 1e9
_NOTHING = Estimate(ZERO, ZERO, ZERO, 2)


class Interval(msgspec.Struct, frozen=True):
    """All from `low` to `high`."""

    low: float
    high: float


class Ensemble(msgspec.Struct, frozen=True, eq=False):
    """A region's misses in each of n random layouts of one kernel.

    draws   what each layout was drawn from (its seed). Two ensembles with the same draws are
            compared layout by layout, which is the more exact the more alike are the layouts that
            two kernels get from one seed, and no less valid if they are not alike at all
    misses  by kind, an iteration: (n,) each
    """

    draws: tuple[int, ...] = ()
    misses: dict[str, Floats] = {}

    def __post_init__(self) -> None:
        """Raises ValueError unless there is a figure of each kind for each layout."""
        for kind, counts in self.misses.items():
            if counts.shape != (len(self.draws),):
                raise ValueError(f"{kind}: {counts.shape} misses for {len(self.draws)} layouts")
        if len(set(self.draws)) < len(self.draws):
            raise ValueError("a layout was drawn twice")
        if self.misses and not self.draws:
            raise ValueError("no layout, no ensemble")


class RegionCost(msgspec.Struct, frozen=True, eq=False):
    """What a region of one kernel costs an iteration.

    executed  amounts by the name of their price; those of "insns" are the path
    ensemble  misses over random layouts
    shipped   misses of each kind in the layout that the linker made
    """

    executed: dict[str, Estimate]
    ensemble: Ensemble = Ensemble()
    shipped: dict[str, float] = {}

    def __post_init__(self) -> None:
        """Raises ValueError if the layout as linked and the ensemble are not of the same kinds."""
        if self.shipped.keys() != self.ensemble.misses.keys():
            raise ValueError(
                f"the layout as linked has misses of {sorted(self.shipped)}, the ensemble of "
                f"{sorted(self.ensemble.misses)}"
            )

    def amount(self, name: str) -> Estimate:
        """How much of that was executed."""
        return self.executed.get(name, _NOTHING)


class Box(msgspec.Struct, frozen=True, eq=False):
    """A box of prices: `low` and `high` of what is executed, (n_executed,), by `executed`; the
    corners of those of misses, (n_corners, n_kinds), by `kinds`. The first corner has all misses
    hidden, the last has all exposed.
    """

    executed: tuple[str, ...]
    low: Floats
    high: Floats
    kinds: tuple[str, ...]
    corners: Floats


class Weighed(msgspec.Struct, frozen=True, eq=False):
    """One kernel's region, weighed by a box of prices.

    amounts, spread  of what is executed, (n_executed,): the mean over runs, and their range
    mean             model cycles of its misses at each corner, (n_corners,)
    draws            those of each layout, (n_layouts, n_corners); none for a cost that is no mean
                     of draws
    """

    amounts: Floats
    spread: Floats
    mean: Floats
    draws: Floats


class Contrast(msgspec.Struct, frozen=True, eq=False):
    """So many times a kernel's cost less so many times another's, at each corner of the prices of
    misses: its least value over the prices of what is executed and over the path's spread, and its
    standard error, (n_corners,) each.
    """

    value: Floats
    error: Floats

    def lowest(self, errors: float) -> float:
        """The least value over all prices, less so many standard errors."""
        # No number of infinite errors is zero.
        return float(np.min(self.value - errors * self.error if errors else self.value))

    def strength(self, *, strict: bool) -> float:
        """How many standard errors it lies above zero at the worst prices. Without any error it
        is infinite, above zero or below; at zero it counts as above unless `strict`.
        """
        known = np.where(self.value > 0 if strict else self.value >= 0, np.inf, -np.inf)
        return float(np.min(np.divide(self.value, self.error, out=known, where=self.error > 0)))


def box(prices: Prices, kinds: Sequence[str]) -> Box:
    """The box of these prices, for these kinds of misses. A miss whose price was never measured may
    also cost nothing: there is no other lower end that its source proves.
    """
    priced = priced_kinds(prices, kinds)
    of_misses = (prices.misses[kind] for kind in priced)
    ends = ((one.hidden if one.calibrated else 0.0, one.exposed) for one in of_misses)
    corners = list(itertools.product(*ends))
    executed = {name: believed(prices, name) for name in prices.executed}
    return Box(
        executed=tuple(executed),
        low=np.array([one.low for one in executed.values()], dtype=np.float64),
        high=np.array([one.high for one in executed.values()], dtype=np.float64),
        kinds=priced,
        corners=np.array(corners, dtype=np.float64).reshape(len(corners), len(priced)),
    )


def corner(whole: Box, index: int) -> Box:
    """The part of a box with the prices of misses at one corner."""
    return msgspec.structs.replace(whole, corners=whole.corners[index : index + 1 or None])


def weigh(cost: RegionCost, prices: Box) -> Weighed:
    """A region's ensemble, weighed."""
    count = len(cost.ensemble.draws)
    cycles = np.zeros((count, len(prices.corners)))
    for kind, price in zip(prices.kinds, prices.corners.T, strict=True):
        cycles += cost.ensemble.misses[kind][:, np.newaxis] * price
    mean = cycles.mean(axis=0) if count else np.zeros(len(prices.corners))
    return Weighed(*_executed(cost, prices), mean, cycles)


def weigh_shipped(cost: RegionCost, prices: Box) -> Weighed:
    """A region in the layout that the linker made, weighed; the path without its spread, since
    what is asked of one layout is where it lies."""
    amounts, spread = _executed(cost, prices)
    mean = np.zeros(len(prices.corners))
    for kind, price in zip(prices.kinds, prices.corners.T, strict=True):
        mean += cost.shipped[kind] * price
    return Weighed(amounts, np.zeros_like(spread), mean, np.zeros((0, len(mean))))


def without_spread(weighed: Weighed) -> Weighed:
    """The same with the path taken for exact."""
    return msgspec.structs.replace(weighed, spread=np.zeros_like(weighed.spread))


def in_order_of(base: Ensemble, other: Ensemble) -> Ensemble | None:
    """The other ensemble with its layouts in the base's order; None if they are not the same
    draws, so that no layout of one belongs to one of the other.
    """
    places = {draw: index for index, draw in enumerate(other.draws)}
    if places.keys() != set(base.draws):
        return None
    order = [places[draw] for draw in base.draws]
    return Ensemble(base.draws, {kind: counts[order] for kind, counts in other.misses.items()})


def contrast(
    more: Weighed,
    less: Weighed,
    prices: Box,
    *,
    times_more: float = 1.0,
    times_less: float = 1.0,
    paired: bool = False,
) -> Contrast:
    """`times_more` times the mean cost of one less `times_less` times that of the other.

    Layouts that are paired are subtracted one by one; others have the standard error of Welch.
    The path's spread counts as `effect_between` has that of few runs: the sum of both ranges.
    """
    amounts = times_more * more.amounts - times_less * less.amounts
    amounts -= times_more * more.spread + times_less * less.spread
    executed = np.minimum(amounts * prices.low, amounts * prices.high).sum()
    value = executed + (times_more * more.mean - times_less * less.mean)
    if paired:
        variance = _variance_of_mean(times_more * more.draws - times_less * less.draws)
    else:
        variance = _variance_of_mean(times_more * more.draws)
        variance = variance + _variance_of_mean(times_less * less.draws)
    return Contrast(value, np.sqrt(variance))


def least_ratio(
    more: Weighed, less: Weighed, prices: Box, *, errors: float, paired: bool = False
) -> float:
    """The lower end of the interval of the ratio of two mean costs, over all prices: the largest
    ratio r for which one less r times the other lies `errors` standard errors above zero.

    E. C. Fieller, Some Problems in Interval Estimation, J. R. Stat. Soc. B 16 (1954). It is zero
    where a cost is not known to be more than that, and infinite where the other is zero. The
    function of r is concave and above zero at r = 0, so there is one such r.
    """

    def lowest(ratio: float) -> float:
        return contrast(more, less, prices, times_less=ratio, paired=paired).lowest(errors)

    if lowest(0.0) <= 0:
        return 0.0
    high = 1.0
    while lowest(high) > 0:
        high *= 2
        if high > _LARGEST_RATIO:
            return math.inf
    return _crossing(lowest, 0.0, high)


def _crossing(falling: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that is above zero at `low` and not at `high` crosses it, by false
    position; a bound that stays is given half its weight (the Illinois rule).
    """
    at_low, at_high = falling(low), falling(high)
    zero, stayed = _ZERO * at_low, ""
    middle = low
    for _ in range(_STEPS):
        middle = low + (high - low) * at_low / (at_low - at_high)
        at_middle = falling(middle)
        if abs(at_middle) <= zero:
            break
        if at_middle > 0:
            low, at_low = middle, at_middle
            at_high /= 2 if stayed == "high" else 1
            stayed = "high"
        else:
            high, at_high = middle, at_middle
            at_low /= 2 if stayed == "low" else 1
            stayed = "low"
    return middle


class KernelPair(msgspec.Struct, frozen=True, eq=False):
    """Two kernels weighed by one box of prices. Each question is put in the same words whichever
    is the base, so that swapping them answers it the other way round to the last bit.
    """

    base: Weighed
    other: Weighed
    prices: Box
    paired: bool = False

    def slower(self, times: float) -> Contrast:
        """By what the other costs more than so many times the base."""
        return contrast(self.other, self.base, self.prices, times_less=times, paired=self.paired)

    def faster(self, times: float) -> Contrast:
        """By what the base costs more than so many times the other."""
        return contrast(self.base, self.other, self.prices, times_less=times, paired=self.paired)

    def same(self, times: float) -> tuple[Contrast, Contrast]:
        """By what each costs less than so many times the other."""
        base, other, prices, paired = self.base, self.other, self.prices, self.paired
        return (
            contrast(base, other, prices, times_more=times, paired=paired),
            contrast(other, base, prices, times_more=times, paired=paired),
        )

    def cycles(self, errors: float) -> Interval:
        """Other less base over all prices, give or take so many standard errors."""
        return Interval(self.slower(1.0).lowest(errors), 0.0 - self.faster(1.0).lowest(errors))

    def relative(self, errors: float) -> Interval:
        """The same as a fraction of the base."""
        up = least_ratio(self.other, self.base, self.prices, errors=errors, paired=self.paired)
        down = least_ratio(self.base, self.other, self.prices, errors=errors, paired=self.paired)
        return Interval(up - 1, (1 / down if down else math.inf) - 1)


def _executed(cost: RegionCost, prices: Box) -> tuple[Floats, Floats]:
    found = [cost.amount(name) for name in prices.executed]
    return (
        np.array([float(one.value) for one in found], dtype=np.float64),
        np.array([float(one.high - one.low) for one in found], dtype=np.float64),
    )


def _variance_of_mean(draws: Floats) -> Floats:
    """No draws have none, and of one alone nothing is known."""
    count, corners = draws.shape
    if count == 0:
        return np.zeros(corners)
    if count == 1:
        return np.full(corners, np.inf)
    # Draws that are all alike have no variance, whatever their mean is rounded to.
    squares = ((draws - draws[0]) - (draws - draws[0]).mean(axis=0)) ** 2
    variance: Floats = squares.sum(axis=0) / (count * (count - 1))
    return variance


ERRORS = 1.4
"""How many standard errors the interval of a mean reaches to either side. An effect's interval adds
up the ranges of both kernels, so two equal kernels part where they are four standard errors of
their difference apart: 2 * 2 * 1.4 is 4 times the root of 2."""

_AS_RUNS = 2
"""That interval is none of the least and the most of many runs, which `effect_between`
distinguishes by their order, but one whose reach it is to add to the other's."""


def mean_cycles(cost: RegionCost, prices: Prices) -> Estimate:
    """The model cycles of a region an iteration without its placement, as an estimate like that of
    a path; ValueError for fewer than two layouts.

    A search over many kernels has to add and subtract them, so each has one figure for itself: the
    mean over random layouts, with all prices in the middle of their intervals. Whether two kernels
    differ at all prices is asked of the two together (placement.py).
    """
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
