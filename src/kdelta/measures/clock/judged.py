# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts on what pairs of boots took."""

import statistics
from collections.abc import Sequence

import msgspec

from kdelta.infer.clock.decide import ClockVerdict, decide_all
from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.effects.effects import OPEN, Effects, OperationEffect, Word
from kdelta.measures.clock.boots import TimedKernels
from kdelta.measures.model import Effect, MeasuredEffects

NAME, UNIT = "times", "nanoseconds"
WHERE = " by the clock"
_NOT_BY_PATH = "the path is the same: where the linker put the code, or what no path shows"
_DISAGREE = "clock and path disagree: see the paths that are not as on a real CPU"
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
    return MeasuredEffects(NAME, UNIT, tuple(effects), WHERE)


def next_to_path(found: MeasuredEffects, path: Effects) -> MeasuredEffects:
    """Return the verdicts with how each decided one fits that on the path of its operation."""
    known = {one.name: one for one in path.operations}
    effects = tuple(
        msgspec.structs.replace(one, reason=_fit(one.word, known[one.region]))
        if one.region in known and one.word not in OPEN
        else one
        for one in found.effects
    )
    return msgspec.structs.replace(found, effects=effects)


def _fit(word: Word, path: OperationEffect) -> str:
    """Return what the times of two kernels have to do with what they execute."""
    if path.verdict.word in OPEN:
        return f"the path is {path.verdict.word}"
    if path.verdict.word is Word.SAME:
        return "no difference" if word is Word.SAME else _NOT_BY_PATH
    if word is Word.SAME:
        return f"the path is {path.verdict.word}, and the time is not by more than the margin"
    return "explained by the path" if word is path.verdict.word else _DISAGREE


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
        reason = f"{verdict.pairs} pairs of boots do not decide"
        reason += f"; {more} more would probably" if more else ""
    bounded = verdict.high <= margin
    return Effect(name, verdict.word, base, other, change, reason, bounded=bounded)
