# SPDX-License-Identifier: GPL-2.0-or-later
"""Cells of tables: figures in the rounding of all forms, with what they are sorted by."""

import math
from fractions import Fraction

from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.cycles.placement_model import Bounds
from kdelta.infer.effects.effects import Word
from kdelta.infer.effects.estimate import Estimate, Quantity
from kdelta.report import figures
from kdelta.report.document import Cell
from kdelta.report.words import ORDER, TONES

NOTHING = Cell("")


def number(value: Fraction | float | None) -> Cell:
    """Return a figure, without decimals if it is large; an empty cell for None."""
    return NOTHING if value is None else Cell(figures.fitted(Fraction(value)), float(value))


def signed(value: Fraction | float | None) -> Cell:
    """Return a difference that stands alone; an empty cell for None."""
    return NOTHING if value is None else Cell(figures.difference(Fraction(value)), float(value))


def difference(hundredths: int, value: Fraction) -> Cell:
    """Return a difference as it was rounded; `value` is what was rounded."""
    return Cell(figures.signed(hundredths, value), float(value))


def rounded(hundredths: int) -> Cell:
    """Return a figure as it was rounded."""
    return Cell(figures.plain(hundredths), float(hundredths))


def sides(cost: Quantity) -> tuple[Cell, Cell, Cell]:
    """Return base, other and their difference, which add up as printed."""
    return between(cost.base.value, cost.other.value)


def between(base: Fraction, other: Fraction) -> tuple[Cell, Cell, Cell]:
    """Return two figures and their difference, which add up as printed."""
    unit = figures.unit_of(base, other)
    ends = figures.scaled(base, unit), figures.scaled(other, unit)
    return rounded(ends[0]), rounded(ends[1]), difference(ends[1] - ends[0], other - base)


def percent(part: Fraction | None) -> Cell:
    """Return a change in per cent; None is a cost that is new."""
    return Cell(figures.percent(part), float("inf") if part is None else float(part))


def spread(effect: Estimate) -> Cell:
    """Return how far an effect may be off, or in how many pairs of runs it is equal."""
    text = figures.equal_pairs(effect) or figures.spread(effect)
    return Cell(text, float(effect.half_width))


def reach(bounds: Bounds) -> Cell:
    """Return how far an interval reaches from its value, at most; "?" if it has no end."""
    most = max(bounds.high - bounds.value, bounds.value - bounds.low)
    return number(most) if math.isfinite(most) else Cell("?")


def effect(cost: Quantity) -> tuple[Cell, Cell, Cell, Cell, Cell]:
    """Return base, other, their difference, the same in per cent, and its spread."""
    return (*sides(cost), percent(cost.percent), spread(cost.effect))


def ends(found: Interval | None) -> Cell:
    """Return an interval of model cycles, from one end to the other; an empty cell for None."""
    if found is None:
        return NOTHING
    texts = (figures.fitted(Fraction(end)) for end in (found.low, found.high))
    return Cell(figures.span(*texts), found.high)


def relative(found: Interval | None) -> Cell:
    """Return an interval of a fraction in per cent; an empty cell for None."""
    if found is None:
        return NOTHING
    return Cell(figures.in_per_cent(found), (found.low + found.high) / 2)


def verdict(word: Word) -> Cell:
    """Return a verdict's word, in its colour."""
    return Cell(word.value, ORDER.index(word), TONES[word])
