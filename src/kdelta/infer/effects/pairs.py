# SPDX-License-Identifier: GPL-2.0-or-later
"""Effects by pairs: runs of two kernels under one perturbation, and the mean of their differences.

Both runs of a pair have the boot number, seed, memory, phase and warm-up of that index. Where the
kernels are alike, most of a run's state is then the same in both, and cancels. What does not cancel
is in the spread of the differences, by which the interval of their mean is made:

- fewer than `MANY_PAIRS`: the mean +- `TIMES` times the range of the differences. From
  `FEWEST_PAIRS` on, which are of as many boots, it is enough for a word (chance.py).
- from `MANY_PAIRS` on: Student's interval at the error of the look. Runs of one boot may be alike,
  so where boots repeat it is that of the means by boot.

Between kernels that are not alike the state is another one, and Welch's interval may be narrower.
Both are then made at half of the look's error, and the narrower one counts.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import msgspec

from kdelta.counts.by_key import by_key
from kdelta.infer.effects.estimate import (
    MANY_PAIRS,
    TIMES,
    ZERO,
    Estimate,
    Quantity,
    Scale,
    effect_between,
    error_of_look,
    estimate,
    student_reach,
)
from kdelta.spec.run import boot_of

NOT_SHAKEN = 0
"""The perturbation that moves nothing: its pair is no draw of the others, and in no interval."""


FEWEST_TO_SAY = 2
"""Pairs of which something can be said."""

HALF = Fraction(1, 2)
"""The share of the look's error of each of two intervals of which the narrower one counts."""


class RunPairs(msgspec.Struct, frozen=True):
    """Which runs of two kernels are pairs: the place of each on either side, and its boot.

    alike  the kernels are: the pairs alone count, and the sides have no other runs
    """

    places: tuple[tuple[int, int], ...]
    boots: tuple[int, ...]
    alike: bool

    def effect(self, base: Estimate, other: Estimate, differences: Sequence[Fraction]) -> Estimate:
        """Return the effect by the differences of the pairs, unless all runs of a side agree; or by
        both sides where that is narrower and kernels are not alike.
        """
        if base.exact and other.exact:
            return effect_between(base, other)
        if self.alike:
            return paired_effect(differences, self.boots)
        value = other.value - base.value
        apart = effect_between(base, other, HALF)
        paired = paired_effect(differences, self.boots, HALF)
        if paired.low <= value <= paired.high and paired.half_width < apart.half_width:
            return msgspec.structs.replace(paired, value=value)
        return apart


def pairs_of_runs(
    base: Sequence[int], other: Sequence[int], among: Sequence[int], *, alike: bool
) -> RunPairs:
    """Return the pairs of runs with these perturbations. among: those that are on both sides."""
    places = tuple((base.index(index), other.index(index)) for index in among)
    return RunPairs(places, tuple(map(boot_of, among)), alike)


def kept_pairs(differences: Mapping[int, Fraction]) -> list[int]:
    """Return the perturbations whose pairs count: all if they have one difference, else those that
    are shaken, if they are enough. differences: by perturbation.
    """
    indexes = list(differences)
    return indexes if len(set(differences.values())) == 1 else shaken(indexes)


def shaken(indexes: Sequence[int]) -> list[int]:
    """Return the perturbations without the one that moves nothing, if there are enough others."""
    rest = [index for index in indexes if index != NOT_SHAKEN]
    return rest if len(rest) >= FEWEST_TO_SAY else list(indexes)


def effect_by_index(differences: Mapping[int, Fraction]) -> Estimate:
    """Return the mean of the differences of pairs by their perturbation, of two or more."""
    kept = kept_pairs(differences)
    return paired_effect([differences[index] for index in kept], [boot_of(one) for one in kept])


def paired_effect(
    differences: Sequence[Fraction], boots: Sequence[int], share: Fraction = Fraction(1)
) -> Estimate:
    """Return the mean of differences with its interval, made at that share of the look's error;
    ValueError without any. boots: of the pairs.
    """
    found = estimate(differences)
    if not found.variance:
        reach = ZERO
    elif found.n < MANY_PAIRS or len(set(boots)) < 2:
        reach = TIMES * (found.high - found.low)
    else:
        by_boot = by_key(zip(boots, differences, strict=True))
        means = [sum(of, ZERO) / len(of) for of in by_boot.values()]
        middle = estimate(means)
        square = middle.variance / len(means)
        reach = student_reach(square, len(means) - 1, share * error_of_look(found.n))
        # Boots with more pairs than others have no more weight, so the middle may be elsewhere.
        reach += abs(middle.value - found.value)
    return Estimate(
        found.value, found.value - reach, found.value + reach, found.n, found.variance, paired=True
    )


class Scales(msgspec.Struct, frozen=True):
    """Quantities from counts of the runs of two kernels, pair by pair where these are known."""

    base: Scale
    other: Scale
    pairs: RunPairs | None = None

    def quantity(self, base: Sequence[int], other: Sequence[int]) -> Quantity:
        """Return a figure on both sides from a count a run of each."""
        sides = self.base.estimate(base), self.other.estimate(other)
        if self.pairs is None:
            return Quantity(*sides)
        ours, theirs = self.base.scaled(base), self.other.scaled(other)
        mine, its = self.base.denominator, self.other.denominator
        differences = [
            Fraction(theirs[after] * mine - ours[before] * its, mine * its)
            for before, after in self.pairs.places
        ]
        return Quantity(*sides, self.pairs.effect(*sides, differences))

    def of(self, base: Sequence[Fraction], other: Sequence[Fraction]) -> Quantity:
        """Return a figure on both sides from one a run of each."""
        sides = estimate(base), estimate(other)
        if self.pairs is None:
            return Quantity(*sides)
        differences = [other[its] - base[own] for own, its in self.pairs.places]
        return Quantity(*sides, self.pairs.effect(*sides, differences))
