# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures and verdicts as they stand in every JSON document."""

from fractions import Fraction

import msgspec

from kdelta.infer.effects import Verdict
from kdelta.infer.estimate import Estimate, Quantity

Number = int | float


class JsonEstimate(msgspec.Struct, frozen=True):
    """A figure, its interval, from how many runs, and whether all of them agreed."""

    value: Number
    low: Number
    high: Number
    n: int
    exact: bool


class JsonQuantity(msgspec.Struct, frozen=True):
    """A figure on both sides and the difference; per cent of the base unless that is nought."""

    base: JsonEstimate
    other: JsonEstimate
    effect: JsonEstimate
    percent: float | None


class JsonVerdict(msgspec.Struct, frozen=True):
    """A verdict on path; `within` are instructions, for "same"."""

    word: str
    within: Number | None
    reason: str


def json_number(value: Fraction) -> Number:
    """A figure: whole ones as integers."""
    return value.numerator if value.denominator == 1 else float(value)


def json_estimate(estimate: Estimate) -> JsonEstimate:
    """A figure with its interval."""
    return JsonEstimate(
        json_number(estimate.value),
        json_number(estimate.low),
        json_number(estimate.high),
        estimate.n,
        estimate.exact,
    )


def json_quantity(quantity: Quantity) -> JsonQuantity:
    """A figure on both sides."""
    percent = quantity.percent
    return JsonQuantity(
        json_estimate(quantity.base),
        json_estimate(quantity.other),
        json_estimate(quantity.effect),
        None if percent is None else float(percent),
    )


def json_verdict(verdict: Verdict) -> JsonVerdict:
    """A verdict on path."""
    within = None if verdict.within is None else json_number(verdict.within)
    return JsonVerdict(verdict.word.value, within, verdict.reason)
