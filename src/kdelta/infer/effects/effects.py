# SPDX-License-Identifier: GPL-2.0-or-later
"""From the counts of perturbed runs of two kernels to effects and verdicts on path."""

import enum
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import msgspec

from kdelta.counts.by_key import by_key
from kdelta.counts.model import Context, FunctionCost, RegionCounts, RunCounts, merged_regions
from kdelta.infer.effects.clock_bound import clock_bound_text, times_more
from kdelta.infer.effects.costs import (
    Costs,
    RegionRuns,
    Sides,
    costs_of,
    with_other_tasks,
)
from kdelta.infer.effects.deferred import MAY_OUTWEIGH, WITH_OTHERS, has_mean, is_beyond
from kdelta.infer.effects.estimate import (
    LOOKS,
    PAIR_LOOKS,
    Estimate,
    Quantity,
    bound,
    bound_of_same,
    is_seen,
    runs_to_decide,
)
from kdelta.infer.effects.functions import (
    FunctionEffect,
    Key,
    by_function,
    check_sum,
    function_effects,
    with_callers,
)
from kdelta.infer.effects.levels import StateLevels, state_levels
from kdelta.infer.effects.matched import Index, MatchedRuns, matched_runs, matched_sides
from kdelta.infer.effects.pairs import Scales
from kdelta.infer.effects.paths import NOT_OWN, iteration_scale, time_scale, timed_regions
from kdelta.infer.effects.steady import CLEAR, is_steadily_apart, levels, once, standard_errors
from kdelta.infer.effects.weigh import EffectCycles, weigh_effect


class Word(enum.StrEnum):
    """A verdict's word. "placement only" and "not slower in what is counted" are on model cycles
    (placement.py).
    """

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    NOT_SLOWER = "not slower in what is counted"
    PLACEMENT_ONLY = "placement only"
    MIXED = "mixed"
    NOT_STEADY = "not steady"
    DEPENDS_ON_STATE = "depends on state"
    DEPENDS_ON_SPEED = "depends on CPU speed"
    UNRESOLVED = "unresolved"
    NOT_COMPARABLE = "not comparable"


FIRM = frozenset({Word.FASTER, Word.SLOWER, Word.MIXED})
"""Words that say that the path changed."""

OPEN = frozenset(
    {
        Word.MIXED,
        Word.NOT_STEADY,
        Word.DEPENDS_ON_STATE,
        Word.DEPENDS_ON_SPEED,
        Word.UNRESOLVED,
        Word.NOT_COMPARABLE,
    }
)
"""Words that do not say whether the kernel is slower."""


class Verdict(msgspec.Struct, frozen=True):
    """What is known about one operation's path.

    within       of "same": how large an effect may be, in instructions an iteration; 0: exact
    reason       why nothing is known
    runs_needed  of "unresolved" because the interval is too wide: after how many runs a side it
                 would probably be decided; 0: after more than are made, or not by runs
    """

    word: Word
    within: Fraction | None = None
    reason: str = ""
    runs_needed: int = 0


class OperationEffect(msgspec.Struct, frozen=True):
    """One operation on both sides. `costs` is None for one that is not comparable; `base` and
    `other` are its instructions an iteration wherever it succeeded.
    """

    name: str
    verdict: Verdict
    base: Estimate | None
    other: Estimate | None
    costs: Costs | None
    functions: tuple[FunctionEffect, ...]
    notes: tuple[str, ...] = ()


class BackgroundEffect(msgspec.Struct, frozen=True):
    """What interrupts ("interrupts") or other tasks ("other") did meanwhile, in instructions a
    virtual second, over all operations that both sides have.
    """

    context: Context
    verdict: Verdict
    rate: Quantity
    functions: tuple[FunctionEffect, ...]


class Effects(msgspec.Struct, frozen=True):
    """All that two kernels' runs say about their difference."""

    operations: tuple[OperationEffect, ...]
    background: tuple[BackgroundEffect, ...]
    warnings: tuple[str, ...] = ()


MARGIN = Fraction(5, 1000)
"""The part of the base below which an effect does not matter, unless the user names another: what
is shown to be within it is the same.
"""


def compare_runs(
    base: Sequence[RunCounts],
    other: Sequence[RunCounts],
    *,
    margin: Fraction = MARGIN,
    alike: bool = False,
) -> Effects:
    """Return the effects between perturbed runs of a base and of another kernel.

    Operations come in the base's order, then those that only the other has. Raises LabError if
    anything does not add up. alike: the kernels share most of a run's state, so they are judged by
    pairs of runs alone (pairs.py).
    """
    sides = (
        [(run.perturbation, merged_regions(run)) for run in base],
        [(run.perturbation, merged_regions(run)) for run in other],
    )
    ours, theirs = (
        by_key((name, (index, one)) for index, regions in runs for name, one in regions.items())
        for runs in sides
    )
    failed = {name: why for run in (*base, *other) for name, why in run.failed.items()}
    operations = tuple(
        _operation(
            name,
            matched_runs(ours[name], theirs[name], alike=alike),
            _notes((ours[name], theirs[name]), (len(base), len(other))),
            margin,
        )
        if name in ours and name in theirs and name not in failed
        else _not_comparable(
            name,
            [one for _, one in ours.get(name, ())],
            [one for _, one in theirs.get(name, ())],
            failed.get(name, ""),
        )
        for name in {**ours, **theirs, **failed}
    )
    effects = Effects(
        operations, _background(sides, margin, alike=alike), run_warnings(base, other)
    )
    check_sums(effects)
    return effects


def check_sums(effects: Effects) -> None:
    """Raises LabError unless functions add up, exactly, to what they account for."""
    for operation in effects.operations:
        if operation.costs is not None:
            check_sum(operation.name, operation.functions, operation.costs.insns)
    for row in effects.background:
        check_sum(f"work of {row.context}", row.functions, row.rate)


def verdict_on(cost: Quantity, margin: Fraction = MARGIN) -> Verdict:
    """Return the verdict that an interval gives: faster or slower if it excludes zero; else same,
    if it lies within the margin, a part of the base; else unresolved.
    """
    effect = cost.effect
    if effect.n < 2:
        return Verdict(
            Word.UNRESOLVED, reason="one run on a side has no spread: --perturb makes more"
        )
    if effect.low > 0:
        return Verdict(Word.SLOWER)
    if effect.high < 0:
        return Verdict(Word.FASTER)
    allowed = margin * abs(cost.base.value)
    if (within := bound_of_same(effect)) <= allowed:
        return Verdict(Word.SAME, within=within)
    needed = runs_to_decide(effect, allowed)
    runs = f"{needed}" if needed else f"more than {(PAIR_LOOKS if effect.paired else LOOKS)[-1]}"
    reason = f"{_range_text(effect, cost.base)}; {runs} runs a side would probably decide"
    return Verdict(Word.UNRESOLVED, reason=reason, runs_needed=needed)


def _range_text(effect: Estimate, base: Estimate) -> str:
    """How small and how large an effect may be, in per cent of a base that is not zero."""
    factor = 100 / abs(base.value) if base.value else Fraction(1)
    unit = "%" if base.value else " instructions"
    return f"{float(effect.low * factor):+.3g} to {float(effect.high * factor):+.3g}{unit}"


MEDIAN_SHARE = Fraction(1, 2)
"""By what part of an effect that of the median iteration may differ from it, to be the same one."""

_UNCERTAIN = "iterations differ so much that their mean may be chance"
_ENDS = "the sides have different numbers of iterations, and their ends may make it"
_TWO_LEVELS = "runs have two levels (--all)"
_FEW_SPECIALS = "special instructions differ, and runs do not agree on how many"
_FEW_PAIRS = "less than two pairs of runs with the same perturbation"
_TWO_SIGNS = "the mean and the median iteration differ in sign"


def weighed(costs: Costs) -> EffectCycles:
    """Return an operation's effect in cycles, at least and at most."""
    return weigh_effect(costs.insns, costs.string_bytes, costs.specials)


def weighed_verdict(verdict: Verdict, costs: Costs, margin: Fraction = MARGIN) -> Verdict:
    """Return a verdict on instructions, or the one that special instructions and string bytes make
    of it.
    """
    found = weighed(costs)
    if not found.terms or costs.insns.effect.n < 2:
        return verdict
    word = Word.SLOWER if found.low > 0 else Word.FASTER if found.high < 0 else Word.MIXED
    if word is Word.MIXED and (verdict.word is Word.UNRESOLVED or found.within(margin)):
        return verdict
    if word is verdict.word or found.decided:
        return verdict if word is verdict.word else Verdict(word)
    return Verdict(Word.UNRESOLVED, reason=_FEW_SPECIALS, runs_needed=LOOKS[0])


def path_verdict(costs: Costs, runs: MatchedRuns, margin: Fraction = MARGIN) -> Verdict:
    """Return the verdict on one operation's path.

    A region that is not steady has no verdict, unless pairs differ steadily, and no word where mean
    and median differ in sign. What special instructions and bytes of string operations may turn is
    mixed.
    """
    insns, sides = costs.insns, runs.sides
    if moving := _moving(runs):
        return Verdict(Word.NOT_STEADY, reason=moving)
    verdict = verdict_on(insns, margin)
    if verdict.word not in FIRM:
        return weighed_verdict(verdict, costs, margin)
    if (within := _once(sides)) >= abs(insns.effect.value):
        if within <= margin * abs(insns.base.value):
            return Verdict(Word.SAME, within=within)
        return Verdict(Word.UNRESOLVED, reason=_ENDS)
    if found := _not_firm(costs, runs):
        return found
    return weighed_verdict(verdict, costs, margin)


def _not_firm(costs: Costs, runs: MatchedRuns) -> Verdict | None:
    """Return what is reported instead of a firm word that the iterations do not bear."""
    effect = costs.insns.effect.value
    if effect * costs.median_insns.effect.value < 0:
        return Verdict(Word.UNRESOLVED, reason=_TWO_SIGNS)
    if moving := _moving(runs, float(abs(effect)) / 2):
        return Verdict(Word.NOT_STEADY, reason=moving)
    if _is_uncertain(costs, runs):
        whole = costs.insns.effect
        needed = 0 if whole.is_enough else runs_to_decide(whole, Fraction(0))
        return Verdict(Word.UNRESOLVED, reason=_UNCERTAIN, runs_needed=needed)
    return None


def _moving(runs: MatchedRuns, least_insns: float = math.inf) -> str:
    """Which sides are not steady, and how; "" if both are, or all pairs differ steadily."""
    pairs = _alike_pairs(runs)
    if pairs and all(is_steadily_apart(*pair, least_insns) for pair in pairs):
        return ""
    found = [
        next(filter(None, (levels(one, least_insns) for one in side)), None) for side in runs.sides
    ]
    named = zip(("base", "other"), found, strict=True)
    return "; ".join(f"{name}: {one}" for name, one in named if one)


def _alike_pairs(runs: MatchedRuns) -> list[tuple[RegionCounts, RegionCounts]]:
    """Return the pairs of runs of kernels that are alike; none of others."""
    if runs.pairs is None or not runs.pairs.alike:
        return []
    base, other = runs.sides
    return [(base[ours], other[its]) for ours, its in runs.pairs.places]


def _once(sides: Sides) -> Fraction:
    """What regions of different lengths differ in, instructions an iteration, because each begins
    and ends once: what their first and last iteration has more than the median; 0 for equal ones.
    """
    regions = [region for side in sides for region in side]
    if len({region.iteration_count for region in regions}) == 1:
        return Fraction(0)
    return max(Fraction(once(region)) / region.iteration_count for region in regions)


def _is_uncertain(costs: Costs, runs: MatchedRuns) -> bool:
    """Return whether the blocks of iterations differ so much that the mean of an effect may be
    chance, and it is not that of the median iteration, which may not. Where runs vary and are
    enough, what iterations differ by is in their interval.
    """
    if costs.insns.effect.is_enough and not costs.insns.effect.exact:
        return False
    errors = [[standard_errors(region) for region in side] for side in runs.sides]
    if pairs := _alike_pairs(runs):
        errors = [[standard_errors(other, base) for base, other in pairs]]
    of_mean, of_median = (
        CLEAR * math.sqrt(sum(sum(e[i] ** 2 for e in side) / len(side) for side in errors))
        for i in range(2)
    )
    mean, median = costs.insns.effect.value, costs.median_insns.effect.value
    if abs(mean) >= of_mean:
        return False
    return abs(mean - median) > MEDIAN_SHARE * abs(mean) or abs(median) < of_median


def _own_insns(side: RegionRuns) -> Estimate | None:
    insns = (region.cost("own").insns for region in side)
    return iteration_scale(side).estimate(insns) if side else None


def _not_comparable(name: str, base: RegionRuns, other: RegionRuns, why: str) -> OperationEffect:
    """An operation that did not run on both sides, or failed in a run."""
    where = "in base" if base else "in other"
    reason = "failed in some runs" if base and other else f"only {where}"
    reason = reason if base or other else "in neither"
    verdict = Verdict(Word.NOT_COMPARABLE, reason=f"{reason}: {why}" if why else reason)
    return OperationEffect(name, verdict, _own_insns(base), _own_insns(other), None, ())


def _operation(
    name: str, runs: MatchedRuns, notes: Sequence[str], margin: Fraction
) -> OperationEffect:
    """Return what an operation's runs say; notes: on all of them."""
    sides = runs.sides
    scales = Scales(iteration_scale(sides[0]), iteration_scale(sides[1]), runs.pairs)
    costs = costs_of(sides, scales)
    rows = [[_rows(region, "own") for region in side] for side in sides]
    by_name = [by_function(side) for side in rows]
    functions = function_effects(by_name[0], by_name[1], scales)
    functions = with_callers(functions, (rows[0], rows[1]), scales)
    found = [_levels(side, names) for side, names in zip(sides, by_name, strict=True)]
    verdict = _of_clock(functions, costs, sides) or path_verdict(costs, runs, margin)
    verdict = _with_others(verdict, costs, with_other_tasks(sides, scales), margin)
    if runs.too_few:
        verdict = Verdict(Word.UNRESOLVED, reason=_FEW_PAIRS)
    if verdict.word is Word.UNRESOLVED and any(found) and not is_seen(costs.insns.effect):
        verdict = msgspec.structs.replace(verdict, reason=f"{verdict.reason}; {_TWO_LEVELS}")
    return OperationEffect(
        name=name,
        verdict=verdict,
        base=costs.insns.base,
        other=costs.insns.other,
        costs=costs,
        functions=functions,
        notes=(*notes, *runs.left_out, *_level_texts(found)),
    )


def _with_others(verdict: Verdict, costs: Costs, whole: Quantity, margin: Fraction) -> Verdict:
    """The verdict, or the one that work of other tasks makes of it, where that is decided."""
    if verdict.word not in (Word.FASTER, Word.SLOWER, Word.SAME):
        return verdict
    if not is_seen(costs.others.effect):
        return verdict
    found = verdict_on(whole, margin)
    turned = found.word is Word.SAME or is_beyond(whole.effect, margin * abs(whole.base.value))
    turned |= verdict.word in FIRM and found.word in FIRM
    is_small = bound(costs.insns.effect) <= margin * abs(costs.insns.base.value)
    is_larger = found.word is verdict.word and found.word in FIRM and is_small
    if not turned or (found.word in (verdict.word, Word.UNRESOLVED) and not is_larger):
        return verdict
    if not has_mean(whole.effect):
        return Verdict(Word.UNRESOLVED, reason=MAY_OUTWEIGH, runs_needed=LOOKS[0])
    return msgspec.structs.replace(found, reason=WITH_OTHERS)


def _of_clock(functions: Sequence[FunctionEffect], costs: Costs, sides: Sides) -> Verdict | None:
    """The verdict on a program that a clock ended; None if it is none."""
    regions = [region for side in sides for region in side]
    if any(region.iteration_count != 1 for region in regions):
        return None
    base, other = (
        {(one.origin, one.name): getattr(one.cost, side).value for one in functions}
        for side in ("base", "other")
    )
    names = {row.name for region in regions for row in region.functions}
    factor = times_more(base, other, names)
    if factor is None:
        return None
    whole = costs.insns.base.value, costs.insns.other.value
    return Verdict(Word.NOT_COMPARABLE, reason=clock_bound_text(factor, *whole))


def _levels(side: RegionRuns, functions: Mapping[Key, Sequence[int]]) -> StateLevels | None:
    """Return the levels of a region's runs of one kernel; functions: see `state_levels`."""
    means = [region.mean_own_insns() for region in side]
    return state_levels(means, functions, [max(1, region.iteration_count) for region in side])


def _level_texts(found: Sequence[StateLevels | None]) -> Iterator[str]:
    """Return a line for each side that has levels: base, and other."""
    for side, one in zip(("base", "other"), found, strict=True):
        if one:
            yield f"{side} has {one}"


def _rows(region: RegionCounts, context: Context) -> list[FunctionCost]:
    return [function for function in region.functions if function.context == context]


def _notes(
    sides: tuple[Sequence[tuple[Index, RegionCounts]], Sequence[tuple[Index, RegionCounts]]],
    runs: tuple[int, int],
) -> tuple[str, ...]:
    """Return what is to be known of an operation's runs, of so many of both kernels."""
    notes = [
        f"succeeded in {len(side)} of {wanted} runs of {word}"
        for word, side, wanted in zip(("base", "other"), sides, runs, strict=True)
        if len(side) < wanted
    ]
    counts = [sorted({region.iteration_count for _, region in side}) for side in sides]
    if counts[0] != counts[1]:
        shown = [", ".join(map(str, side)) for side in counts]
        notes.append(f"iterations differ: {shown[0]} in base, {shown[1]} in other")
    return tuple(notes)


_Runs = Sequence[tuple[Index, Mapping[str, RegionCounts]]]
"""The regions of each run, with the index of its perturbation."""


def _background(
    sides: tuple[_Runs, _Runs], margin: Fraction, *, alike: bool
) -> tuple[BackgroundEffect, ...]:
    """Return what others did, over the regions that every run has, and whose time is known."""
    base, other, pairs = matched_sides(*sides, alike=alike)
    timed = timed_regions([*base, *other])
    if not timed or not base or not other:
        return ()
    runs = timed[: len(base)], timed[len(base) :]
    scales = Scales(time_scale(runs[0]), time_scale(runs[1]), pairs)
    return tuple(_background_of(context, runs, scales, margin) for context in NOT_OWN)


def _background_of(
    context: Context,
    sides: tuple[Sequence[RegionRuns], Sequence[RegionRuns]],
    scales: Scales,
    margin: Fraction,
) -> BackgroundEffect:
    rate = scales.quantity(
        *([sum(region.cost(context).insns for region in run) for run in side] for side in sides)
    )
    found = [
        by_function([[row for region in run for row in _rows(region, context)] for run in side])
        for side in sides
    ]
    functions = function_effects(found[0], found[1], scales)
    return BackgroundEffect(context, verdict_on(rate, margin), rate, functions)


def run_warnings(base: Sequence[RunCounts], other: Sequence[RunCounts]) -> tuple[str, ...]:
    """What the runs warned of, each once, with how many runs said so."""
    counted = Counter(
        f"{word}: {text}"
        for word, side in (("base", base), ("other", other))
        for run in side
        for text in run.warnings
    )
    return tuple(
        line if times == 1 else f"{line} ({times} runs)" for line, times in counted.items()
    )
