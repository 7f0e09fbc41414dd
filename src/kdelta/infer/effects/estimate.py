# SPDX-License-Identifier: GPL-2.0-or-later
"""Estimates: a mean over perturbed runs, with its interval or the word exact; means of these over
regions, and whether parts add up to a whole.

Where each run's regions are known, a kernel's mean is a figure of each run, and has a range over
runs as a region has (`run_means`). Where only intervals of regions are known, they add: the mean
reaches as far as if all of its regions were off in the same direction. That is wide, since most of
them are not, and needs no assumption of how they depend on each other.
"""

import enum
import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import msgspec

from kdelta.infer.effects.intervals import two_sided

ZERO = Fraction(0)
WHOLE = Fraction(1)

ERROR = Fraction(1, 1000)
"""How often the interval of an effect may miss it, over all looks at growing numbers of runs: a
table has dozens of operations."""

LOOKS = (8, 16, 32, 64)
"""Runs a side after which a verdict is looked for. The looks share `ERROR`, one to two to three to
four: of eight runs that have one of two levels a side may show only one of them.
"""

FEWEST = 7
"""Runs a side from which on the interval is that of a mean: one of the first look may fail."""

FEWEST_PAIRS = 6
"""Pairs of runs from which on the interval of their differences is enough for a word."""

MANY_PAIRS = 8
"""Pairs from which on that interval is Student's."""

TIMES = 2
"""How many times the range of few differences their interval reaches. Of six pairs without an
effect the mean is so far off in 0.01 % of cases if differences are normal, of seven in 0.001 %.
"""

_FEWEST_TO_FORECAST = 4

PAIR_LOOKS = (5, 7, 9, 17, 33)
"""Runs a side after which a verdict by pairs is looked for: they are 4, 6, 8, 16 and 32 pairs that
are shaken. The first can show what is the same.
"""


CLEAR = 4
"""How many times the ranges of both sides an effect must be, to be accepted from 3 runs of each.
Two equal sides of three come so far apart in 0.006 % of cases if they are normal, in 0.012 % if
exponential or log-normal, in 0.024 % if uniform (simulated with 4 million pairs).
"""

_LEAST_RUNS = 3
"""Of each, for their ranges to say anything: of two, 1.0 to 1.6 % of pairs come 4 ranges apart."""


class Estimate(msgspec.Struct, frozen=True, omit_defaults=True):
    """A figure with its range or interval [low, high] over n runs, and the variance of these runs.
    A figure that was calculated from others has variance 0, which means unknown if low < high.
    `paired`: it is an effect, runs of a side do not agree, and n are pairs of runs whose
    differences the interval is of.

    `exact` means that all of at least two perturbed runs agreed to the last instruction. One run
    is exact for that run alone, and says nothing about the spread: n is 1 and `exact` is False.
    """

    value: Fraction
    low: Fraction
    high: Fraction
    n: int
    variance: Fraction = ZERO
    paired: bool = False

    @property
    def is_enough(self) -> bool:
        """Return whether an effect is of so many runs or pairs that its interval makes a word."""
        return self.n >= (FEWEST_PAIRS if self.paired else FEWEST)

    @property
    def has_mean(self) -> bool:
        """Whether runs are so many, and known, that the interval of their mean can be given."""
        return self.n >= FEWEST and (self.variance > 0 or self.low == self.high)

    @property
    def exact(self) -> bool:
        """Whether perturbations moved nothing."""
        return self.low == self.high and self.n > 1

    @property
    def half_width(self) -> Fraction:
        """How far the interval reaches from its middle."""
        return (self.high - self.low) / 2

    def __neg__(self) -> "Estimate":
        """The same figure with the other sign."""
        return Estimate(-self.value, -self.high, -self.low, self.n, self.variance, self.paired)


def around(value: Fraction, far: Fraction, n: int) -> Estimate:
    """A figure whose interval reaches equally far to both sides."""
    return Estimate(value, value - far, value + far, n)


_UNKNOWN = Estimate(ZERO, ZERO, ZERO, 0)


class Quantity(msgspec.Struct, frozen=True):
    """One figure on both sides, and the effect: where it is not given, as by pairs of runs, it
    follows from these (see `effect_between`).
    """

    base: Estimate
    other: Estimate
    effect: Estimate = _UNKNOWN

    def __post_init__(self) -> None:
        """Enters the effect."""
        if not self.effect.n:
            msgspec.structs.force_setattr(self, "effect", effect_between(self.base, self.other))

    @property
    def percent(self) -> Fraction | None:
        """The effect in per cent of the base; None where the base is zero and the other not."""
        if self.base.value == 0:
            return ZERO if self.other.value == 0 else None
        return 100 * (self.other.value - self.base.value) / self.base.value

    @property
    def moved(self) -> bool:
        """Whether there is anything to say: a difference, or a spread."""
        effect = self.effect
        return effect.value != 0 or effect.low != effect.high


def estimate(values: Sequence[Fraction]) -> Estimate:
    """The mean of one figure a run, and the range of them; raises ValueError without any."""
    if not values:
        raise ValueError("no run, no estimate")
    n, whole = len(values), sum(values, ZERO)
    variance = ZERO
    if min(values) != max(values):
        variance = (sum((one * one for one in values), ZERO) - whole * whole / n) / (n - 1)
    return Estimate(whole / n, min(values), max(values), n, variance)


def effect_between(base: Estimate, other: Estimate, share: Fraction = WHOLE) -> Estimate:
    """Return the difference of the means with its interval, made at that share of the look's error.

    Of few runs it is the sum of both ranges on either side, since the range itself is uncertain.
    For two sides with the same distribution (normal or exponential, simulated with 4 million pairs)
    that misses 0 in 1.3 % of cases with three runs a side, and in 13 % with two. From `FEWEST` runs
    a side on it is Welch's interval for the difference of two means (B. L. Welch, Biometrika 34,
    1947), which gets narrower with runs.
    """
    value = other.value - base.value
    n = min(base.n, other.n)
    if base.has_mean and other.has_mean:
        return around(value, _reach_of_means(base, other, share), n)
    far = (base.high - base.low) + (other.high - other.low)
    return around(value, far, n)


def _reach_of_means(base: Estimate, other: Estimate, share: Fraction) -> Fraction:
    """Return how far Welch's interval reaches."""
    parts = [(one.variance / one.n, one.n) for one in (base, other)]
    square = sum((part for part, _ in parts), ZERO)
    if not square:
        return ZERO
    degrees = square**2 / sum((part**2 / (n - 1) for part, n in parts), ZERO)
    return student_reach(square, int(degrees), share * error_of_look(min(base.n, other.n)))


def student_reach(square: Fraction, degrees: int, error: Fraction) -> Fraction:
    """Return how far Student's interval reaches, by the square of the standard error; rounded,
    since hosts' sines differ in the last digit.
    """
    return Fraction(f"{two_sided(float(error), degrees) * math.sqrt(square):.9g}")


def error_of_look(runs: int) -> Fraction:
    """Return the part of `ERROR` that the look after so many runs a side has."""
    rank = max(1, sum(look <= runs for look in LOOKS))
    return ERROR * rank / sum(range(1, len(LOOKS) + 1))


def runs_to_decide(effect: Estimate, allowed: Fraction) -> int:
    """Return how many runs a side would probably show an effect, or show that it is within
    +-`allowed`, if its figure and spread stay: one of `LOOKS`, or of `PAIR_LOOKS` for an effect by
    pairs; 0 if it takes more than the last.
    """
    if effect.paired:
        return _pairs_to_decide(effect, allowed)
    if effect.n < FEWEST:
        return LOOKS[0]
    gap = max(abs(effect.value), allowed - abs(effect.value))
    needed = effect.n * (effect.half_width / gap) ** 2 if gap > 0 else math.inf
    return next((look for look in LOOKS if look > effect.n and look >= needed), 0)


def _pairs_to_decide(effect: Estimate, allowed: Fraction) -> int:
    """See `runs_to_decide`. The spread of a few pairs may be twice what it is of many."""
    looks = [look for look in PAIR_LOOKS if look > effect.n + 1]  # one pair is not shaken
    if effect.n < _FEWEST_TO_FORECAST:
        return looks[0]
    gap = max(abs(effect.value), allowed - abs(effect.value))
    times = 1 if effect.n >= MANY_PAIRS else 2
    return next((look for look in looks if _reach_after(look - 1, effect) <= times * gap), 0)


def _reach_after(pairs: int, effect: Estimate) -> Fraction:
    """Return how far the interval of an effect will probably reach after so many pairs."""
    if pairs < MANY_PAIRS:
        return effect.half_width
    return student_reach(effect.variance / pairs, pairs - 1, error_of_look(pairs))


class Scale:
    """Estimates of a mean (an iteration, a second) from counts of whole runs, in integers until
    the end: functions are thousands, and Fractions an order of magnitude slower.
    """

    def __init__(self, divisors: Sequence[int], factor: int = 1) -> None:
        """A run's mean is its count times `factor` over its divisor, a positive one for each."""
        self.denominator = math.lcm(*divisors)
        self._weights = [factor * (self.denominator // divisor) for divisor in divisors]

    @property
    def runs(self) -> int:
        """How many runs."""
        return len(self._weights)

    def estimate(self, counts: Iterable[int]) -> Estimate:
        """Return the estimate for one count a run."""
        scaled = self.scaled(counts)
        n, whole, least, most = len(scaled), sum(scaled), min(scaled), max(scaled)
        variance = ZERO
        if least != most:
            squares = n * sum(one * one for one in scaled) - whole * whole
            variance = Fraction(squares, n * (n - 1) * self.denominator**2)
        return Estimate(
            Fraction(whole, self.denominator * n),
            Fraction(least, self.denominator),
            Fraction(most, self.denominator),
            n,
            variance,
        )

    def scaled(self, counts: Iterable[int]) -> list[int]:
        """Return the mean of each run, in parts of which `denominator` are one."""
        return [count * weight for count, weight in zip(counts, self._weights, strict=True)]


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


def is_clear(effect: Estimate, times: int) -> bool:
    """Return whether an effect of few runs is more than so many times its range."""
    return effect.n >= _LEAST_RUNS and abs(effect.value) > times * effect.half_width


def is_seen(effect: Estimate) -> bool:
    """Whether the interval of an effect excludes zero."""
    return not effect.low <= 0 <= effect.high


def farthest(effect: Estimate) -> Fraction:
    """How far the interval reaches from the figure, on the side where it reaches farther."""
    return max(effect.value - effect.low, effect.high - effect.value)


def bound(effect: Estimate) -> Fraction:
    """How large an effect may be, in either direction, as far as its interval says."""
    return max(abs(effect.low), abs(effect.high))


def bound_of_same(effect: Estimate) -> Fraction:
    """Return how large an effect may be to be the same. Of few pairs that is the mean and once
    their range: an effect of 1.5 times as much is then as small in less than 1 % of cases
    (simulated), where a word takes less than 0.1 %.
    """
    if effect.paired and effect.n < MANY_PAIRS:
        return abs(effect.value) + effect.half_width / TIMES
    return bound(effect)


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
    runs: Mapping[str, Mapping[int, Fraction]], costs: Mapping[str, Estimate]
) -> dict[int, Fraction]:
    """Return what a kernel costs in each run, in per cent of the base, over regions, by the
    index of the run's perturbation; none if regions have not one figure for each of them.

    runs: by region the cost in each run. costs: of the regions that are in the mean, in the base.
    """
    rows = [runs.get(name, {}) for name in costs]
    if not rows or any(row.keys() != rows[0].keys() for row in rows):
        return {}
    parts = [(row, 100 / abs(cost.value)) for row, cost in zip(rows, costs.values(), strict=True)]
    return {
        index: sum((row[index] * part for row, part in parts), ZERO) / len(parts)
        for index in rows[0]
    }


def share_percent(part: Estimate, whole: Estimate) -> Estimate | None:
    """A part in per cent of the whole, from its smallest to its largest quotient; None where the
    whole may be zero.
    """
    if not is_seen(whole):
        return None
    ends = [100 * one / other for one in (part.low, part.high) for other in (whole.low, whole.high)]
    return Estimate(100 * part.value / whole.value, min(ends), max(ends), min(part.n, whole.n))


def total(parts: Iterable[Estimate], n: int) -> Estimate:
    """The sum of figures, whose ranges add; `n` runs for a sum of none."""
    every = list(parts)
    return Estimate(
        sum((one.value for one in every), ZERO),
        sum((one.low for one in every), ZERO),
        sum((one.high for one in every), ZERO),
        min((one.n for one in every), default=n),
    )
