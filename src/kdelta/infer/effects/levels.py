# SPDX-License-Identifier: GPL-2.0-or-later
"""Levels: runs of one kernel that cost one of two values, by the state that they start in."""

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction

import msgspec

from kdelta.infer.effects.functions import Key

FEWEST_RUNS = 4
"""Fewer runs do not distinguish a level from chance."""

CLEAR_GAP = 4
"""The gap between the levels must be more than this many times the range within either."""

RELEVANT = Fraction(5, 1000)
"""The gap must be a larger part of the lower level than this."""

_NAMED = 3


class StateLevels(msgspec.Struct, frozen=True):
    """What runs cost, in instructions an iteration: the mean of the lower and of the higher level.

    low, high            the means
    low_runs, high_runs  how many runs have them
    functions            those that differ most between the levels, with by how much
    """

    low: Fraction
    high: Fraction
    low_runs: int
    high_runs: int
    functions: tuple[tuple[str, Fraction], ...]

    def __str__(self) -> str:
        """Both levels, how often they were seen, and what differs."""
        named = ", ".join(f"{float(size):+.0f} {name}" for name, size in self.functions)
        return (
            f"two levels: {float(self.low):.0f} in {self.low_runs} of "
            f"{self.low_runs + self.high_runs} starting states, {float(self.high):.0f} in "
            f"{self.high_runs}" + (f" ({named})" if named else "")
        )


def state_levels(
    means: Sequence[Fraction], functions: Mapping[Key, Sequence[int]], iterations: Sequence[int]
) -> StateLevels | None:
    """Return the two levels of a kernel's runs, or None if they have no clear gap.

    means: instructions an iteration, one a run. functions: by function its instructions in each
    run. iterations: of each run.
    """
    order = sorted(range(len(means)), key=means.__getitem__)
    if len(order) < FEWEST_RUNS:
        return None
    gaps = [means[after] - means[before] for before, after in itertools.pairwise(order)]
    split = max(range(len(gaps)), key=gaps.__getitem__) + 1
    low, high = order[:split], order[split:]
    within = max(means[part[-1]] - means[part[0]] for part in (low, high))
    gap = gaps[split - 1]
    if gap <= CLEAR_GAP * within or gap <= RELEVANT * means[low[0]]:
        return None
    moved = {
        name: _mean([Fraction(counts[run], iterations[run]) for run in high])
        - _mean([Fraction(counts[run], iterations[run]) for run in low])
        for (_, name), counts in functions.items()
    }
    most = sorted(moved.items(), key=lambda one: -abs(one[1]))[:_NAMED]
    lows, highs = (_mean([means[run] for run in part]) for part in (low, high))
    return StateLevels(lows, highs, len(low), len(high), tuple(one for one in most if one[1]))


def _mean(values: Sequence[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)
