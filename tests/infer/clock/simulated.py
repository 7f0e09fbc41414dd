# SPDX-License-Identifier: GPL-2.0-or-later
"""Series of timed boots whose true effect is known, drawn at random, and what verdicts on them are.

docs/clock-statistics.md has what 10,000 series of each kind came to.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kdelta.infer.clock.decide import ALPHA, ClockVerdict, decide
from kdelta.infer.clock.e_values import (
    Floats,
    discoveries,
    log_e_values,
    log_signs,
    log_t_mixture,
)
from kdelta.infer.effects.effects import Word

PAIRS, SEED = 60, 1
MARGIN = 0.01
NO_MARGIN = 0.0001
"""Where it is asked how soon a difference is found: nothing is the same within that."""
SIGMA = 0.01
"""The standard deviation of a pair's difference, unless levels make it."""

LEVEL, SMALL = 0.03, 0.001
"""How far two levels are apart, and the noise of a boot on either."""

MANY, CHANGED = 43, 8
"""Operations of a study, and how many of them are slower."""

EFFECTS = ("none", "beyond", "0.5", "1", "2")
Random = np.random.Generator
Boots = tuple[Floats, Floats]
"""Logarithms of the medians of base and other, a row a series, a column a pair."""


class Kind(NamedTuple):
    """A kind of series without an effect; sigma: the standard deviation of a pair's difference."""

    draw: Callable[[Random, int], Boots]
    sigma: float = SIGMA
    effects: tuple[str, ...] = EFFECTS
    limit: str = ""


def independent(
    draw: Callable[[Random, tuple[int, int]], Floats],
) -> Callable[[Random, int], Boots]:
    """Return a drawing in which no boot depends on another."""

    def both(random: Random, trials: int) -> Boots:
        return draw(random, (trials, PAIRS)), draw(random, (trials, PAIRS))

    return both


def scaled(deviation: float) -> float:
    """Return the factor by which boots of that standard deviation make differences of SIGMA."""
    return SIGMA / math.sqrt(2) / deviation


def small_noise(random: Random, shape: tuple[int, int]) -> Floats:
    """Return the noise of boots on levels."""
    return SMALL * random.standard_normal(shape)


def levels(random: Random, shape: tuple[int, int]) -> Floats:
    """Return a level a boot, drawn at random, with a little noise."""
    return LEVEL * random.integers(0, 2, shape) + small_noise(random, shape)


def in_order(random: Random, first: Floats, second: Floats, *, drawn: bool) -> Boots:
    """Return the boots of a pair by kernel: the base first, or either as a coin says."""
    swapped = random.integers(0, 2, first.shape) == 1 if drawn else np.zeros(first.shape, bool)
    return np.where(swapped, second, first), np.where(swapped, first, second)


def drifting(random: Random, trials: int, *, drawn: bool = True) -> Boots:
    """Return boots on a machine that gets slower by 30 % in a study and walks at random besides."""
    slope, step = 0.25 * SIGMA, 0.6 * SIGMA
    noise = math.sqrt((SIGMA**2 - slope**2 - step**2) / 2)
    shape = (trials, 2 * PAIRS)
    walk = np.cumsum(step * random.standard_normal(shape) + slope, axis=1)
    boots = walk + noise * random.standard_normal(shape)
    return in_order(random, boots[:, ::2], boots[:, 1::2], drawn=drawn)


def second_slower(random: Random, trials: int) -> Boots:
    """Return boots of which the second of each pair is slower, since the machine is warm."""
    first, second = (small_noise(random, (trials, PAIRS)) for _ in range(2))
    return in_order(random, first, LEVEL + second, drawn=True)


def linked(links: int) -> Callable[[Random, int], Boots]:
    """Return a drawing of boots of some links a side, each with a level of its own, of which one a
    side is drawn for each pair; 0: of a new link for each boot.
    """

    def draw(random: Random, trials: int) -> Boots:
        return side(random, trials), side(random, trials)

    def side(random: Random, trials: int) -> Floats:
        shape = (trials, PAIRS)
        own = LEVEL * random.integers(0, 2, (trials, links or PAIRS))
        used = random.integers(0, links, shape) if links else np.indices(shape)[1]
        return np.take_along_axis(own, used, axis=1) + small_noise(random, shape)

    return draw


OF_LEVELS = math.sqrt(LEVEL**2 / 2 + 2 * SMALL**2)
KINDS = {
    "normal": Kind(independent(lambda random, shape: scaled(1) * random.standard_normal(shape))),
    "heavy": Kind(  # tails of t with 3 degrees
        independent(lambda random, shape: scaled(math.sqrt(3)) * random.standard_t(3, shape))
    ),
    "skewed": Kind(
        independent(
            lambda random, shape: (
                scaled(math.sqrt(math.e * (math.e - 1))) * random.lognormal(0, 1, shape)
            )
        )
    ),
    "drifting": Kind(drifting),
    "levels": Kind(independent(levels), OF_LEVELS),
    "second": Kind(second_slower, math.hypot(LEVEL, SMALL)),
    "fixed-order": Kind(
        lambda random, trials: drifting(random, trials, drawn=False),
        effects=("none",),
        limit="the order is not drawn",
    ),
    **{
        f"links-{links or 'new'}": Kind(
            *(linked(links), OF_LEVELS, ("none",) if links else ("none", "beyond", "1")),
            "links are used again" if links else "",
        )
        for links in (1, 2, 5, 20, 0)
    },
}


class Row(NamedTuple):
    """What series of one true effect came to: the share with a wrong verdict, that whose interval
    at the stop has the effect, and pairs to the verdict, the median, 60 without any.
    """

    wrong: float
    covered: float
    pairs: float


class Operations(NamedTuple):
    """Studies of many operations: false ones among the discoveries, in the mean; and of the studies
    without any, the share that finds all that is slower.
    """

    false_share: float
    complete: float


def log_effect(kind: Kind, effect: str) -> float:
    """Return a true effect as a logarithm."""
    if effect == "beyond":
        return math.log1p(1.5 * MARGIN)
    return 0.0 if effect == "none" else float(effect) * kind.sigma


def stopped(differences: Floats, margin: float) -> ClockVerdict:
    """Return the first verdict of a series, or that after its last pair."""
    bound = math.log1p(margin)
    log_e = log_e_values(differences - np.array([[0.0], [-bound], [bound]]))
    zero, below, above = log_e >= -math.log(ALPHA)
    # Without these there is no verdict, so nothing else has to be looked at.
    for pairs in np.flatnonzero(zero | (below & above)) + 1:
        verdict = decide(differences[:pairs].tolist(), margin)
        if verdict.word is not Word.UNRESOLVED:
            return verdict
    return decide(differences.tolist(), margin)


def mixture_differs(differences: Floats) -> float:
    """Return how often the mean of the t mixture as it is and the sign mixture is 1 / alpha."""
    pairs = np.arange(1.0, PAIRS + 1)
    sums, squares = np.cumsum(differences, axis=1), np.cumsum(differences**2, axis=1)
    both = np.logaddexp(log_t_mixture(pairs, sums, squares), log_signs(differences))
    return float((both - math.log(2) >= -math.log(ALPHA)).any(axis=1).mean())


def is_wrong(verdict: ClockVerdict, true: float, margin: float) -> bool:
    """Return whether a verdict is not true; `true` is the logarithm of the effect."""
    if verdict.word is Word.SAME:
        return abs(math.expm1(true)) > margin
    return (verdict.word is Word.SLOWER and true <= 0) or (
        verdict.word is Word.FASTER and true >= 0
    )


def judged(name: str, effect: str, trials: int) -> Row:
    """Return what series of a kind and a true effect come to."""
    kind = KINDS[name]
    random = np.random.default_rng([SEED, *name.encode(), *effect.encode()])
    base, other = kind.draw(random, trials)
    true = log_effect(kind, effect)
    margin = MARGIN if effect in ("none", "beyond") else NO_MARGIN
    found = [stopped(row, margin) for row in other + true - base]
    return Row(
        float(np.mean([is_wrong(one, true, margin) for one in found])),
        float(np.mean([one.low <= math.expm1(true) <= one.high for one in found])),
        float(np.median([one.pairs for one in found])),
    )


def operations(studies: int) -> Operations:
    """Return how many discoveries are false in studies of many operations, some of them slower by a
    standard deviation, that are stopped as soon as a discovery is false.
    """
    random = np.random.default_rng([SEED, MANY, CHANGED])
    found = []
    for _ in range(studies):
        shared = random.standard_normal(PAIRS)
        differences = math.sqrt(0.5) * (random.standard_normal((MANY, PAIRS)) + shared)
        differences[:CHANGED] += 1
        log_e = log_e_values(differences)
        for pairs in range(PAIRS):
            taken = discoveries(log_e[:, pairs], ALPHA)
            largest = np.argsort(log_e[:, pairs])[MANY - taken :]
            false = int((largest >= CHANGED).sum())
            if false:
                break
        found.append((taken, false))
    rates = [false / max(taken, 1) for taken, false in found]
    complete = [taken >= CHANGED for taken, false in found if not false]
    return Operations(float(np.mean(rates)), float(np.mean(complete)))
