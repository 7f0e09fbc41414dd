#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How often the rule for rows that vary is wrong, simulated: two sides of one operation are drawn
from distributions that are known, and judged after 4, 8, 16 and 32 runs a side, as `compare` does.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from kdelta.infer.effects.chance import FEW
from kdelta.infer.effects.effects import MARGIN, Word, verdict_on
from kdelta.infer.effects.estimate import LOOKS, Quantity, estimate
from kdelta.measures.path.judges import MOST_RUNS

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
    asked = parser.parse_args()
    for line in rows(asked.trials, asked.seed):
        print(line)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
