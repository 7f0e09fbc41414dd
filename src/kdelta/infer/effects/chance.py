# SPDX-License-Identifier: GPL-2.0-or-later
"""Which verdicts on paths are none: chance could have made them, since runs are few, or the code is
the same, only relinked.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType

import msgspec

from kdelta.counts.model import RegionCounts, RunCounts, merged_regions
from kdelta.infer.effects.costs import Costs
from kdelta.infer.effects.effects import (
    FIRM,
    MARGIN,
    MEDIAN_SHARE,
    Effects,
    OperationEffect,
    Verdict,
    Word,
    compare_runs,
    run_warnings,
)
from kdelta.infer.effects.estimate import (
    CLEAR,
    FEWEST_PAIRS,
    LOOKS,
    PAIR_LOOKS,
    ZERO,
    Estimate,
    Quantity,
    bound,
    effect_between,
    is_clear,
    is_seen,
)
from kdelta.infer.effects.functions import strip_suffixes
from kdelta.infer.effects.pairs import FEWEST_TO_SAY

ENOUGH = LOOKS[0]
"""Runs of each kernel where fewer leave a verdict to chance."""

LARGE = 20
"""How many times the ranges an effect must be that no iteration tells. Sides whose runs have two
values each come `CLEAR` times their ranges apart too often: a range within one value is small.
"""

FEW = 4
"""Runs a side that can show a row to be the same. At 95 %, what none of 2 N runs shows occurs in
less than 1 - 0.05 ** (1 / 2 N) of the starting states: in less than 31 % for 4 runs a side.
"""

NEAR = MARGIN / 4
"""The part of the base by which runs with the same median iteration may differ, to be the same."""

SAME_CODE_RUNS = 11
"""Runs a side, or pairs, that have to agree on the sign of a difference in the same code. In
whatever way both sides depend on each other, without an effect either sign is as likely, so that
all of eleven have one in less than 0.1 % of cases.
"""

OWN_SHARE = Fraction(1, 2)
"""The part of an effect that the functions which differ have to make; if they make less,
`FEWEST_PAIRS` runs a side, or pairs, are needed. Other code may have a level that each run draws
once: four pairs then agree by chance in up to 3.9 % of cases (docs/cases/intervals).
"""

DifferingCode = Mapping[str, Collection[tuple[str, str]]]
"""Operation -> (origin, name) of the functions that it executes and that differ between two
kernels. An operation of which that is not known is not in it.
"""

NOT_KNOWN: DifferingCode = MappingProxyType({})


def by_chance(
    effects: Effects,
    base: Sequence[RunCounts],
    other: Sequence[RunCounts],
    *,
    differing: DifferingCode = NOT_KNOWN,
) -> tuple[str, ...]:
    """Return the operations that are called faster, slower or the same, and of which these runs may
    not show it.

    They show it where one of these holds:

    - there are so many runs that the interval is that of a mean, or so many pairs;
    - all runs of a side agree, and in all of both interrupts and other tasks did the same;
    - it stands in the iterations: the median one differs by about as much as the mean, and it is
      the same in all runs of a side, or by as much in `FEW` pairs or more, or differs by `CLEAR`
      times its ranges. What a run has and another has not (a timer that ends in it) is in a few
      iterations;
    - it is too large for a timer: `LARGE` times the ranges, and `CLEAR` times all that interrupts
      and other tasks executed in any run.

    A difference by pairs, or on which all runs agree, takes `SAME_CODE_RUNS` in the same code, and
    `FEWEST_PAIRS` where the code that differs does not make `OWN_SHARE` of it.

    base, other: the counts that the effects are of.
    """
    sides = [[merged_regions(run) for run in runs] for runs in (base, other)]
    return tuple(
        one.name
        for one in effects.operations
        if one.costs is not None
        and _may_be_chance(
            one.verdict,
            one.costs,
            [run[one.name] for side in sides for run in side if one.name in run],
            least_runs(one, differing),
        )
    )


def least_runs(one: OperationEffect, differing: DifferingCode) -> int:
    """Return how many runs a side, or pairs, a difference takes, by the code that makes it."""
    functions = differing.get(one.name)
    if functions is None or one.costs is None:
        return 0
    if not functions:
        return SAME_CODE_RUNS
    names = {(origin, strip_suffixes(name)) for origin, name in functions}
    own = sum(
        (row.cost.effect.value for row in one.functions if (row.origin, row.name) in names), ZERO
    )
    whole = one.costs.insns.effect.value
    return 0 if own * whole >= OWN_SHARE * whole * whole else FEWEST_PAIRS


def _may_be_chance(
    verdict: Verdict, costs: Costs, regions: Sequence[RegionCounts], least: int
) -> bool:
    """Return whether other runs of both kernels might decide otherwise; least: `least_runs`."""
    if verdict.word is Word.SAME:
        if verdict.reason == NO_CODE:
            return False
        effect = costs.insns.effect
        shown = effect.n >= FEW if effect.paired else effect.exact or effect.is_enough
        return not (shown or _is_near(costs))
    return verdict.word in FIRM and not _is_distinguished(costs, regions, least)


def wanting_runs(
    effects: Effects, doubtful: Collection[str], *, differing: DifferingCode = NOT_KNOWN
) -> dict[str, int]:
    """Return the operations that more runs would probably decide, and how many a side: those that
    chance may have made, and those whose interval is too wide.
    """
    found = {
        one.name: runs_for_doubtful(one, least_runs(one, differing))
        if one.name in doubtful
        else one.verdict.runs_needed
        for one in effects.operations
    }
    return {name: runs for name, runs in found.items() if runs}


def runs_for_doubtful(one: OperationEffect, least: int) -> int:
    """Return how many runs a side leave a verdict to chance no more, or 0; least: `least_runs`."""
    if one.costs is None:
        return 0
    effect = one.costs.insns.effect
    least = max(least, FEWEST_PAIRS) if effect.paired else least or ENOUGH
    if one.verdict.word is Word.SAME:
        least = FEW if effect.paired else ENOUGH
    not_shaken = int(effect.paired)  # it is run, and in no interval
    runs, least = effect.n + not_shaken, least + not_shaken
    looks = PAIR_LOOKS if effect.paired else LOOKS
    return next((look for look in looks if look > runs and look >= least), 0)


Runs = Sequence[RunCounts]
"""What runs of one kernel counted."""


class FirstVerdicts(msgspec.Struct, frozen=True):
    """The effects of two kernels' first runs.

    chance     operations whose verdict these runs may have made
    runs       by operation that more runs would probably decide: how many a side
    margin     see `verdict_on`
    differing  see `by_chance`
    alike      see `compare_runs`
    """

    effects: Effects
    chance: tuple[str, ...]
    runs: dict[str, int]
    margin: Fraction
    differing: DifferingCode = NOT_KNOWN
    alike: bool = False


def first_verdicts(
    base: Runs,
    other: Runs,
    relinked: Collection[str] = (),
    margin: Fraction = MARGIN,
    *,
    differing: Callable[[], DifferingCode] = dict,
    unchanged: Callable[[], Collection[str]] = tuple,
    alike: bool = False,
) -> FirstVerdicts:
    """Return the effects of two kernels' runs, and the operations that more runs are to decide.

    relinked: the regions whose code is the same, only relinked. margin: see `verdict_on`.
    differing: returns what `by_chance` wants; it is asked only where that matters. unchanged:
    returns the operations in which nothing that differs is executed, as `same_by_code` wants them;
    likewise. alike: see `compare_runs`.
    """
    effects = of_relinked(compare_runs(base, other, margin=margin, alike=alike), relinked)
    if any(_is_open(one, margin) for one in effects.operations):
        effects = same_by_code(effects, unchanged(), margin)
    matters = any(one.costs and _is_early(one.costs.insns.effect) for one in effects.operations)
    code = differing() if matters else NOT_KNOWN
    chance = by_chance(effects, base, other, differing=code)
    wanting = wanting_runs(effects, chance, differing=code)
    return FirstVerdicts(effects, chance, wanting, margin, code, alike)


def _is_early(effect: Estimate) -> bool:
    """Return whether a difference is shown by too few runs for the same code."""
    return _agrees(effect) and is_seen(effect) and effect.n < SAME_CODE_RUNS


def settled(
    first: FirstVerdicts,
    more: Mapping[str, tuple[Runs, Runs]],
    base: Runs,
    other: Runs,
    reason: str,
) -> Effects:
    """Return the first verdicts with those of more runs in place of what these are to decide.

    more: by operation, the runs of it alone of both kernels. reason: of what stays open.
    """
    resolved = [
        one
        for name in first.runs
        for one in _resolved(name, *more.get(name, ((), ())), first, reason)
    ]
    sides = [
        (*own, *(counts for pair in more.values() for counts in pair[at]))
        for at, own in enumerate((base, other))
    ]
    effects = with_operations(first.effects, resolved, *sides)
    return left_open(effects, set(first.chance) - {one.name for one in resolved}, reason)


SO_FAR = "so far"
"""The reason of a verdict on first runs, while further ones are made."""


def so_far(first: FirstVerdicts, effects: Effects, waiting: Collection[str]) -> Effects:
    """Return the effects with the words of the first runs for the operations that wait for further
    ones.
    """
    early = _with_verdicts(
        first.effects, waiting, lambda one: msgspec.structs.replace(one, reason=SO_FAR)
    )
    of_first = {one.name: one for one in early if one.name in waiting}
    found = tuple(of_first.get(one.name, one) for one in effects.operations)
    return msgspec.structs.replace(effects, operations=found)


def _resolved(
    name: str, base: Runs, other: Runs, first: FirstVerdicts, reason: str
) -> list[OperationEffect]:
    """Return the operation's effect, if its runs alone decide it; by pairs of runs, also what more
    of them would decide. reason: of what stays open.
    """
    if not base or not other:
        return []
    effects = compare_runs(base, other, margin=first.margin, alike=first.alike)
    doubtful = by_chance(effects, base, other, differing=first.differing)
    (one,) = (one for one in effects.operations if one.name == name)
    if one.costs is None:
        return []
    if name not in doubtful:
        return [one]
    least = least_runs(one, first.differing)
    if not least and not one.costs.insns.effect.paired:
        return []
    runs = runs_for_doubtful(one, least)
    verdict = Verdict(Word.UNRESOLVED, reason=reason, runs_needed=runs)
    return [msgspec.structs.replace(one, verdict=verdict)]


def with_operations(
    effects: Effects,
    operations: Sequence[OperationEffect],
    base: Sequence[RunCounts],
    other: Sequence[RunCounts],
) -> Effects:
    """The effects with these in place of those of the same names.

    base, other: the counts of all runs, of these and of the others, whose warnings are to be
    reported.
    """
    better = {one.name: one for one in operations}
    return msgspec.structs.replace(
        effects,
        operations=tuple(better.get(one.name, one) for one in effects.operations),
        warnings=run_warnings(base, other),
    )


def left_open(effects: Effects, operations: Collection[str], reason: str) -> Effects:
    """The effects with "unresolved" for the operations of these names."""
    verdict = Verdict(Word.UNRESOLVED, reason=reason)
    open_ones = _with_verdicts(effects, operations, lambda _: verdict)
    return msgspec.structs.replace(effects, operations=open_ones)


def with_reason(effects: Effects, operations: Collection[str], reason: str) -> Effects:
    """Return the effects with one more reason of those of these operations that are unresolved."""

    def added(verdict: Verdict) -> Verdict:
        if verdict.word is not Word.UNRESOLVED:
            return verdict
        return msgspec.structs.replace(verdict, reason=f"{verdict.reason}; {reason}")

    return msgspec.structs.replace(effects, operations=_with_verdicts(effects, operations, added))


def _with_verdicts(
    effects: Effects, names: Collection[str], verdict: Callable[[Verdict], Verdict]
) -> tuple[OperationEffect, ...]:
    """All operations, those of these names with another verdict."""
    return tuple(
        msgspec.structs.replace(one, verdict=verdict(one.verdict)) if one.name in names else one
        for one in effects.operations
    )


def _is_distinguished(costs: Costs, regions: Sequence[RegionCounts], least: int) -> bool:
    """Return whether these runs show an effect. least: see `least_runs`."""
    insns = costs.insns
    if _agrees(insns.effect) and insns.effect.n < least:
        return False
    if insns.effect.is_enough:
        return True
    besides = costs.interrupts, costs.background
    if insns.effect.exact and not insns.effect.paired and not any(cost.moved for cost in besides):
        return True
    if is_clear(effect_between(insns.base, insns.other), LARGE):
        theirs = [max(cost.base.high, cost.other.high) for cost in besides]
        if abs(insns.effect.value) > CLEAR * sum(theirs):
            return True
    return all(map(_is_mostly_alone, regions)) and _is_in_iterations(insns, costs.median_insns)


def _agrees(effect: Estimate) -> bool:
    """Return whether an effect is by pairs, or all runs agree on it."""
    return effect.paired or effect.exact


def _is_near(costs: Costs) -> bool:
    """Return whether the median iteration is the same in all runs of both sides, and the other
    iterations add little, such as one in which a timer ended.
    """
    insns, median = costs.insns, costs.median_insns.effect
    equal = median.exact and median.value == 0
    return insns.effect.n >= FEW and equal and bound(insns.effect) <= NEAR * abs(insns.base.value)


def _is_in_iterations(mean: Quantity, median: Quantity) -> bool:
    """Return whether what differs does so in most iterations."""
    whole, most = mean.effect, median.effect
    if abs(whole.value - most.value) > MEDIAN_SHARE * abs(whole.value):
        return False
    if most.exact and (most.n >= FEW or not most.paired):
        return True
    return is_clear(effect_between(median.base, median.other), CLEAR)


def _is_mostly_alone(region: RegionCounts) -> bool:
    """Whether no other task ran in more than half of the iterations that are known."""
    rows = region.iterations
    return 2 * sum(map(any, zip(rows.interrupts, rows.other, strict=True))) < len(rows)


NO_CODE = "no executed code differs"
"""The reason of "same" for an operation whose runs vary by more than a change may be."""


def _is_open(one: OperationEffect, margin: Fraction) -> bool:
    """Return whether runs leave open what an operation's code may decide: also what less than `FEW`
    pairs, which are not equal, differ by within the margin.
    """
    if one.costs is None or one.costs.insns.effect.n < FEWEST_TO_SAY:
        return False
    insns, word = one.costs.insns, one.verdict.word
    few = insns.effect.paired and insns.effect.n < FEW and not insns.effect.exact
    if few and bound(insns.effect) <= margin * abs(insns.base.value):
        return word in (Word.SAME, Word.FASTER, Word.SLOWER)
    is_open = word is Word.UNRESOLVED
    is_open |= word is Word.SAME and _may_be_chance(one.verdict, one.costs, (), 0)
    return is_open and not is_seen(insns.effect)


def same_by_code(effects: Effects, unchanged: Collection[str], margin: Fraction) -> Effects:
    """Return the effects with "same" in place of what runs leave open, for the operations in which
    nothing that differs is executed. A difference that runs show stays: something else makes it.
    """
    names = [
        one.name for one in effects.operations if one.name in unchanged and _is_open(one, margin)
    ]
    verdict = Verdict(Word.SAME, reason=NO_CODE)
    found = _with_verdicts(effects, names, lambda _: verdict)
    return msgspec.structs.replace(effects, operations=found)


MOVED = "the same code relinked: addresses move the path"


def of_relinked(effects: Effects, relinked: Collection[str]) -> Effects:
    """The effects with "placement only" in place of faster and slower for the operations of these
    names, and for what interrupts and others did besides.

    What searches tables of addresses takes other steps where the linker put things elsewhere. That
    is shown, and explained by function, as before; it is no verdict on a change.
    """
    if not relinked:
        return effects
    return msgspec.structs.replace(
        effects,
        operations=_with_verdicts(effects, relinked, _moved),
        background=tuple(
            msgspec.structs.replace(row, verdict=_moved(row.verdict)) for row in effects.background
        ),
    )


def _moved(verdict: Verdict) -> Verdict:
    if verdict.word in FIRM:
        return Verdict(Word.PLACEMENT_ONLY, reason=MOVED)
    return verdict
