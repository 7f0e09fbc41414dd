# SPDX-License-Identifier: GPL-2.0-or-later
"""What a clock found of a change, for the examples of searches."""

from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.effects.effects import Word
from kdelta.report.measured import Effect, MeasuredEffects


def effect(region: str, word: Word, low: float, high: float, reason: str) -> Effect:
    """Return an effect between these fractions, on what took 200 ns."""
    other = 200 * (1 + (low + high) / 2)
    ends = Interval(200, 200), Interval(other, other)
    return Effect(region, word, *ends, Interval(low, high), reason)


def times(*effects: Effect, notes: tuple[str, ...] = ()) -> tuple[MeasuredEffects, ...]:
    """Return these as a clock's."""
    return (MeasuredEffects("times", "nanoseconds", effects, " by the clock", notes),)
