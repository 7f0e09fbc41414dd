# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures as text: rounded so that what is printed still adds up."""

import math
from collections.abc import Sequence
from fractions import Fraction

from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.effects.estimate import Estimate, Quantity
from kdelta.spec.errors import LabError

PLACES = 2
"""Decimals of a mean that is no whole number."""

SCALE = 10**PLACES


WHOLE_FROM = 10**6
"""From here on figures have no decimals, which would not fit their columns."""


def scaled(value: Fraction, unit: int = 1) -> int:
    """The figure in hundredths, rounded to so many: what is printed is computed with these."""
    units: int = round(value * SCALE / unit)
    return units * unit


def plain(hundredths: int) -> str:
    """A figure, without decimals where it is whole."""
    whole, rest = divmod(abs(hundredths), SCALE)
    sign = "-" if hundredths < 0 else ""
    return f"{sign}{whole}" + (f".{rest:0{PLACES}}" if rest else "")


def unit_of(*values: Fraction) -> int:
    """How many hundredths the figures of a row are rounded to: a whole if one is too large."""
    return SCALE if max(values) >= WHOLE_FROM else 1


def pair(cost: Quantity) -> tuple[int, int]:
    """Base and other in hundredths, as they and their difference are printed."""
    base, other = cost.base.value, cost.other.value
    unit = unit_of(base, other)
    return scaled(base, unit), scaled(other, unit)


def signed(hundredths: int, value: Fraction) -> str:
    """A difference with its sign. Where it is too small to be seen, the exact `value` has it."""
    if hundredths:
        return ("+" if hundredths > 0 else "") + plain(hundredths)
    return "0" if not value else "-0.00" if value < 0 else "+0.00"


def brief(value: Fraction, width: int) -> str:
    """A difference with its sign, in thousands or more if it does not fit otherwise."""
    text = difference(value)
    if len(text) > width:
        text = ("-" if value < 0 else "+") + short(abs(value))
    return text


def reach(low: float, high: float) -> str:
    """Return a range of differences in whole numbers, rounded outwards."""
    ends = [f"{end:+,}" if end else "0" for end in (math.floor(low), math.ceil(high))]
    return " to ".join(dict.fromkeys(ends))


def number(value: Fraction) -> str:
    """A figure in running text."""
    return plain(scaled(value))


def fitted(value: Fraction) -> str:
    """A figure of a table, without decimals if it is large."""
    return plain(scaled(value, unit_of(abs(value))))


def difference(value: Fraction) -> str:
    """A difference in running text, with its sign."""
    return signed(scaled(value, unit_of(abs(value))), value)


def percent(value: Fraction | None) -> str:
    """An effect in per cent, with as many digits as it is worth; "new" where the base is zero."""
    if value is None:
        return "new"
    if value == 0:
        return "0%"
    size = abs(value)
    if size >= 99999:
        return f"{float(value):+.0e}%"
    return f"{float(value):+.{_places(size)}f}%"


def _places(size: Fraction) -> int:
    """Decimals of a figure in per cent."""
    return 2 if size < 10 else 1 if size < 1000 else 0


def places_within(far: Fraction) -> int:
    """Decimals that +-far per cent supports: one digit of it, two if the first one is 1."""
    return 2 if far < Fraction(2, 10) else 1 if far < 2 else 0


def effect_percent(cost: Quantity) -> str:
    """An effect in per cent of the base, with no more decimals than its interval supports."""
    effect, base, part = cost.effect, cost.base.value, cost.percent
    if not part or not base or effect.n < 2:
        return percent(part)
    return percent_within(part, 100 * effect.half_width / abs(base))


def percent_within(part: Fraction, far: Fraction) -> str:
    """A figure in per cent that may be off by +-far, 0 if it is exact."""
    places = places_within(far)
    if not far or places >= _places(abs(part)):
        return percent(part)
    text = f"{float(part):+.{places}f}%"
    return text if any(digit in "123456789" for digit in text) else "0%"


def spread(effect: Estimate) -> str:
    """Return how far an effect may be off: "exact", "n=1", a half width in instructions, or in how
    many pairs of runs, which vary, it is the same.
    """
    if effect.n < 2:
        return "n=1"
    if pairs := equal_pairs(effect):
        return f"equal in {pairs} pairs"
    return "exact" if effect.exact else f"+-{short(effect.half_width)}"


def equal_pairs(effect: Estimate) -> str:
    """Return in how many pairs of runs of how many an effect is equal: in all; empty where it is
    not, and where the runs of a side agree.
    """
    return f"{effect.n} of {effect.n}" if effect.exact and effect.paired else ""


def span(low: str, high: str) -> str:
    """Both ends of an interval; one figure where they read the same."""
    return low if low == high else f"{low} to {high}"


def short(value: Fraction) -> str:
    """A positive figure in at most five characters."""
    if value.denominator == 1 and value < 10000:
        return str(value)
    if value < 1000:
        return f"{float(value):.{2 if value < 10 else 1}f}"
    for unit in ("", "k", "M", "G"):
        if value < 10000:
            return f"{float(value):.0f}{unit}"
        value /= 1000
    return "huge"


def shared(
    name: str, values: Sequence[Fraction], whole: Fraction, total: int, unit: int = 1
) -> list[int]:
    """Return the parts of a whole in hundredths, so rounded that they add up to `total` hundredths.
    LabError if the parts are not all of it: only rounding is to be evened out.
    """
    if (found := sum(values, Fraction(0))) != whole:
        raise LabError(
            f"{name}: the rows add up to {float(found)}, and the total is {float(whole)}",
            "this is an error of kdelta; please report it with the output of --format json",
        )
    return rounded_to_total(values, total, unit)


def rounded_to_total(values: Sequence[Fraction], total: int, unit: int = 1) -> list[int]:
    """The values in hundredths, so rounded to the unit that they add up to `total` hundredths.

    Those whose rounding was the worst give way. `total` is the rounded sum, or nearly so.
    """
    rounded = [scaled(value, unit) for value in values]
    missing = (total - sum(rounded)) // unit
    step = unit if missing > 0 else -unit
    # By how much each one's rounding already went the other way.
    worst = sorted(
        range(len(values)), key=lambda index: step * (rounded[index] - values[index] * SCALE)
    )
    for turn in range(abs(missing)):
        rounded[worst[turn % len(worst)]] += step
    return rounded


def in_per_cent(interval: Interval) -> str:
    """Return an interval of a fraction; one figure where both ends read the same."""
    return span(_bounded_percent(interval.low), _bounded_percent(interval.high))


def _bounded_percent(value: float) -> str:
    return percent(Fraction(100 * value)) if math.isfinite(value) else "any"
