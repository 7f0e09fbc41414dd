#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How often the rules for rows that vary are wrong, simulated: two sides of one operation are drawn
from distributions that are known, and judged as `compare` does: side by side after 4, 8, 16 and 32
runs, or with --pairs by their differences after 4, 6, 8, 16 and 32 pairs.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from kdelta.infer.effects.chance import FEW, SAME_CODE_RUNS
from kdelta.infer.effects.effects import MARGIN, Word, verdict_on
from kdelta.infer.effects.estimate import (
    CLEAR,
    FEWEST_PAIRS,
    LOOKS,
    PAIR_LOOKS,
    Estimate,
    Quantity,
    effect_between,
    estimate,
    is_clear,
)
from kdelta.infer.effects.pairs import RunPairs, kept_pairs
from kdelta.lab.request import LabRequest
from kdelta.measures.path.judges import MOST_RUNS
from kdelta.spec.run import boot_of

BASE = 10_000
"""Instructions of the operation; a margin is 50 of them."""
Draw = Callable[[np.random.Generator, int], np.ndarray]


class Shape(NamedTuple):
    """How runs of a kernel are distributed: what is drawn, in instructions, and its mean."""

    name: str
    draw: Draw
    mean: float


def levels(share: float, height: float, noise: float = 0.0) -> Shape:
    """Two values, the higher one with that share; with noise around each."""

    def draw(random: np.random.Generator, runs: int) -> np.ndarray:
        return height * (random.random(runs) < share) + noise * random.standard_normal(runs)

    return Shape(f"levels {share:g} x {height:g}, noise {noise:g}", draw, share * height)


def shapes(scale: float) -> Iterator[Shape]:
    """Return distributions whose standard deviations are of the order of `scale`."""
    yield Shape("normal", lambda random, runs: scale * random.standard_normal(runs), 0.0)
    yield Shape("exponential", lambda random, runs: random.exponential(scale, runs), scale)
    yield Shape(
        "log-normal",
        lambda random, runs: scale * random.lognormal(0, 0.5, runs),
        scale * float(np.exp(0.125)),
    )
    for share in (0.05, 0.1, 0.2, 0.35, 0.5, 0.8):
        yield levels(share, 2 * scale)
        yield levels(share, 2 * scale, scale / 100)


class Outcome(NamedTuple):
    """What a simulated row came to."""

    word: Word
    covered: bool
    runs: int


def judged(random: np.random.Generator, base: Shape, other: Shape, effect: float) -> Outcome:
    """Return the verdict on two sides whose means differ by that many instructions."""
    shift = effect - (other.mean - base.mean)
    sides = [
        [Fraction(round(BASE + by + float(one))) for one in shape.draw(random, MOST_RUNS)]
        for shape, by in ((base, 0.0), (other, shift))
    ]
    for look in (FEW, *LOOKS):
        insns = Quantity(*(estimate(side[:look]) for side in sides))
        verdict = verdict_on(insns, MARGIN)
        if look == FEW:
            if insns.effect.exact and insns.effect.value == 0:
                break
        elif verdict.word is not Word.UNRESOLVED or not look < verdict.runs_needed <= MOST_RUNS:
            break
    covered = insns.effect.low - 1 <= effect <= insns.effect.high + 1  # drawn values are rounded
    return Outcome(verdict.word, covered, look)


def cases() -> Iterator[tuple[str, Shape, Shape, float]]:
    """Return what is simulated: a name, both sides' shapes, and by how much their means differ."""
    margin = float(MARGIN * BASE)
    for scale in (20, 100):
        for shape in shapes(scale):
            for effect in (0.0, 1.5 * margin, 2 * scale + margin):
                yield f"{shape.name}, scale {scale}", shape, shape, effect
    for before, after in ((0.2, 0.35), (0.2, 0.5), (0.2, 0.8), (0.5, 0.8)):
        for noise in (0.0, 1.0):
            base, other = levels(before, 400, noise), levels(after, 400, noise)
            name = f"{base.name}, other's share {after:g}"
            yield name, base, other, other.mean - base.mean


Pairs = Callable[[np.random.Generator, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Draw both sides of so many pairs, of the boots of these numbers, in instructions."""


class PairShape(NamedTuple):
    """How pairs of runs are distributed: what is drawn, and by how much their means differ."""

    name: str
    draw: Pairs
    effect: float = 0.0


def side_by_side(shape: Shape) -> PairShape:
    """Return a shape of pairs whose runs have nothing in common."""
    return PairShape(
        shape.name,
        lambda random, boots: (shape.draw(random, len(boots)), shape.draw(random, len(boots))),
    )


def by_boot(random: np.random.Generator, boots: np.ndarray, scale: float) -> np.ndarray:
    """Return what boots decide: each draws once for all of its runs."""
    drawn: np.ndarray = scale * random.standard_normal(boots.max() + 1)
    return drawn[boots]


def correlated(scale: float, rho: float) -> PairShape:
    """Two values of equal frequency, with a correlation of the values that they are made of."""

    def draw(random: np.random.Generator, boots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        one, two = random.standard_normal((2, len(boots)))
        two = rho * one + np.sqrt(1 - rho**2) * two
        return scale * (one > 0), scale * (two > 0)

    return PairShape(f"two levels, correlation {rho:g}", draw)


def shared(scale: float, apart: float) -> PairShape:
    """A state that both runs have, and for each a part of its own."""

    def draw(random: np.random.Generator, boots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        state = scale * random.standard_normal(len(boots))
        mine, its = apart * random.standard_normal((2, len(boots)))
        return state + mine, state + its

    return PairShape(f"shared {scale:g}, apart {apart:g}", draw)


def pair_shapes(scale: float) -> Iterator[PairShape]:
    """Return shapes of pairs whose standard deviations are of the order of `scale`."""
    yield from map(side_by_side, shapes(scale))
    for rho in (0.5, -0.5, -1.0):
        yield correlated(scale, rho)
    yield shared(scale, scale / 10)
    yield PairShape(
        "by boot alone",
        lambda random, boots: (by_boot(random, boots, scale), by_boot(random, boots, scale)),
    )
    yield PairShape(
        "half by boot",
        lambda random, boots: (
            by_boot(random, boots, scale) + scale * random.standard_normal(len(boots)),
            by_boot(random, boots, scale) + scale * random.standard_normal(len(boots)),
        ),
    )
    for values in (3, 5):
        yield PairShape(
            f"ties: {values} values",
            lambda random, boots, values=values: (
                scale * random.integers(values, size=len(boots)),
                scale * random.integers(values, size=len(boots)),
            ),
        )
    for share in (0.02, 0.1, 0.3):
        yield PairShape(
            f"one side alone has a level, {share:g}",
            lambda random, boots, share=share: (
                np.zeros(len(boots)),
                2 * scale * (random.random(len(boots)) < share),
            ),
            2 * scale * share,
        )


def judged_pairs(
    random: np.random.Generator, shape: PairShape, effect: float, least: int
) -> Outcome:
    """Return the verdict by pairs on two sides whose means differ by that many instructions.

    least: how many pairs a firm word takes; of `FEW`, each iteration costs what its run does, so
    that few pairs which are equal, or far apart, are enough.
    """
    boots = [boot_of(index) for index in range(PAIR_LOOKS[-1])]
    base, other = shape.draw(random, np.array(boots))
    other = other + effect - shape.effect
    sides = [[Fraction(BASE + round(float(one))) for one in side] for side in (base, other)]
    for look in (LabRequest().perturbations, *PAIR_LOOKS):
        differences = {at: sides[1][at] - sides[0][at] for at in range(look)}
        kept = kept_pairs(differences)
        both = [estimate([side[at] for at in kept]) for side in sides]
        pairs = RunPairs((), tuple(boots[at] for at in kept), alike=True)
        found = pairs.effect(*both, [differences[at] for at in kept])
        verdict = verdict_on(Quantity(*both, found), MARGIN)
        word, n = verdict.word, found.n
        if word is Word.SAME:
            is_early = n < FEW
        else:
            is_early = word is not Word.UNRESOLVED and not _is_shown(found, both, least)
        if not is_early and not look < verdict.runs_needed <= MOST_RUNS:
            break
    word = Word.UNRESOLVED if is_early else word
    covered = found.low - 1 <= effect <= found.high + 1
    return Outcome(word, covered, look)


def _is_shown(found: Estimate, sides: Sequence[Estimate], least: int) -> bool:
    """Return whether so many pairs show an effect, as `by_chance` has it. least: see above."""
    if least > FEW or found.is_enough:
        return found.n >= least
    if found.exact:
        return found.n >= FEW
    return is_clear(effect_between(*sides), CLEAR)


def pair_rows(trials: int, seed: int) -> Iterator[str]:
    """Return the lines of the table of pairs."""
    yield "| pairs are | true effect | pairs for a word | slower | faster | same | runs a side |"
    yield "|---|---|---|---|---|---|---|"
    margin = float(MARGIN * BASE)
    cases = [
        (shape, effect + shape.effect, least)
        for scale in (20, 100)
        for shape in pair_shapes(scale)
        for least in (FEW, FEWEST_PAIRS, SAME_CODE_RUNS)
        for effect in (0.0, 1.5 * margin)
    ]
    for number, (shape, effect, least) in enumerate(cases):
        random = np.random.default_rng([seed, number])
        found = [judged_pairs(random, shape, effect, least) for _ in range(trials)]
        shares = [
            sum(one.word is w for one in found) for w in (Word.SLOWER, Word.FASTER, Word.SAME)
        ]
        cells = " | ".join(f"{100 * share / trials:.2f} %" for share in shares)
        mean = sum(one.runs for one in found) / trials
        yield f"| {shape.name} | {100 * effect / BASE:.2f} % | {least} | {cells} | {mean:.1f} |"


def rows(trials: int, seed: int) -> Iterator[str]:
    """Return the lines of the table."""
    yield "| runs are | true effect | slower, faster | same | unresolved | covered | runs a side |"
    yield "|---|---|---|---|---|---|---|"
    for number, (name, base, other, effect) in enumerate(cases()):
        random = np.random.default_rng([seed, number])
        found = [judged(random, base, other, effect) for _ in range(trials)]
        firm = sum(one.word in {Word.SLOWER, Word.FASTER} for one in found)
        same = sum(one.word is Word.SAME for one in found)
        covered = sum(one.covered for one in found)
        mean = sum(one.runs for one in found) / trials
        shares = [firm, same, trials - firm - same, covered]
        cells = " | ".join(f"{100 * share / trials:.2f} %" for share in shares)
        yield f"| {name} | {100 * effect / BASE:.2f} % | {cells} | {mean:.0f} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20_000, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--pairs", action="store_true", help="judge by differences of pairs")
    asked = parser.parse_args()
    table = pair_rows if asked.pairs else rows
    for line in table(asked.trials, asked.seed):
        print(line)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
