# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts on what pairs of boots took."""

import statistics
from collections.abc import Sequence

from kdelta.infer.clock.decide import ClockVerdict, decide_all
from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.effects.effects import Word
from kdelta.measures.clock.boots import TimedKernels
from kdelta.measures.clock.units import published
from kdelta.report.measured import Effect, MeasuredEffects

NAME, UNIT = "times", "nanoseconds"
WHERE = " by the clock"
FIXED_ORDER = "the same kernel was booted first in all pairs"


def timed_effects(
    timed: TimedKernels, margin: float, operations: Sequence[str] = ()
) -> MeasuredEffects:
    """Return the verdicts on these operations, or on all. One may ask after every pair. Figures are
    nanoseconds of an iteration, the median over boots. margin: as a fraction.
    """
    found = timed.differences()
    wanted = {name: of for name, of in found.items() if name in (operations or found)}
    verdicts = decide_all(wanted, margin) if wanted else {}
    base, other = (medians(timed, side) for side in ("base", "other"))
    effects = (
        _effect(name, one, (base[name], other[name]), timed, margin)
        for name, one in verdicts.items()
    )
    others = tuple(one for one in published(timed) if one.region in wanted)
    return MeasuredEffects(NAME, UNIT, tuple(effects), WHERE, others=others)


def medians(timed: TimedKernels, side: str) -> dict[str, float]:
    """Return by region the median over one side's boots, in nanoseconds."""
    found: dict[str, list[float]] = {}
    for pair in timed.pairs:
        for name, ns in getattr(pair, side).ns().items():
            found.setdefault(name, []).append(ns)
    return {name: statistics.median(values) for name, values in found.items()}


def _effect(
    name: str,
    verdict: ClockVerdict,
    ends: tuple[float, float],
    timed: TimedKernels,
    margin: float,
) -> Effect:
    base, other = (Interval(end, end) for end in ends)
    change = Interval(verdict.low, verdict.high)
    if timed.is_of_fixed_order:
        return Effect(name, Word.UNRESOLVED, base, other, change, FIXED_ORDER)
    reason = ""
    if verdict.word is Word.UNRESOLVED:
        more = verdict.more_pairs
        of = "runs" if timed.here else "boots"
        reason = f"{verdict.pairs} pairs of {of} do not decide"
        reason += f"; {more} more would probably" if more else ""
    bounded = verdict.high <= margin
    return Effect(name, verdict.word, base, other, change, reason, bounded=bounded)
