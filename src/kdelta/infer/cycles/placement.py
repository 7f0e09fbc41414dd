# SPDX-License-Identifier: GPL-2.0-or-later
"""From ensembles of layouts of two kernels to effects on model cycles, and verdicts.

docs/placement.md, "Verdicts", has the rules and why each is as it is.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from kdelta.cpus.model import DATA_MISS_KINDS
from kdelta.infer.cycles.ensembles import (
    Box,
    Floats,
    Interval,
    KernelPair,
    RegionCost,
    Weighed,
    box,
    corner,
    in_order_of,
    weigh,
    weigh_shipped,
    without_spread,
)
from kdelta.infer.cycles.placement_model import (
    DEFAULT_MARGIN,
    AsLinked,
    Bounds,
    CodeChange,
    ComparedEnsembles,
    ComparedRegion,
    CycleVerdict,
    Draws,
    PlacementEffect,
)
from kdelta.infer.cycles.prices import FIXED, Prices, believed
from kdelta.infer.cycles.sensitivity import percentile
from kdelta.infer.effects.effects import Word
from kdelta.infer.effects.estimate import Estimate, Quantity, is_seen
from kdelta.infer.effects.intervals import count_discoveries, error_of_each, two_sided, upper_tail

_POWER = statistics.NormalDist().inv_cdf(0.8)
_MOST_LAYOUTS = 1_000_000


class _Case(msgspec.Struct, frozen=True, eq=False):
    """A region on its way to a verdict.

    other     the other kernel's cost, its layouts in the base's order where they are paired
    pair      both kernels weighed by the prices: the word and the interval shown are both from it
    word      what the data speak for most, and `strength` how many standard errors it is from doubt
    chance    how probable such a strength is where the word is wrong; None where nothing is drawn,
              or nothing is tested
    """

    region: ComparedRegion
    other: RegionCost
    pair: KernelPair
    word: Word
    strength: float
    chance: float | None

    @property
    def layouts(self) -> tuple[int, int]:
        """How many the ensembles have."""
        return len(self.region.base.ensemble.draws), len(self.other.ensemble.draws)

    @property
    def degrees(self) -> int:
        """Of freedom. Welch's are never fewer, and may depend on the prices."""
        return max(1, min(self.layouts) - 1)


def placement_effects(
    regions: Sequence[ComparedRegion], prices: Prices, margin: float = DEFAULT_MARGIN
) -> tuple[PlacementEffect, ...]:
    """The effect of a change on the model cycles of each region, with its verdict.

    margin: which differences matter, as a fraction. Of all verdicts that rest on draws,
    `FALSE_DISCOVERIES` may be wrong in the mean.

    Raises ValueError for a margin that is not positive, and for a region whose kernels have not the
    same kinds of misses.
    """
    if not 0 < margin < math.inf:
        raise ValueError(f"a margin of {margin} leaves nothing to be the same")
    cases = [_case(region, prices, margin) for region in regions]
    chances = [case.chance for case in cases if case.chance is not None]
    error = error_of_each(count_discoveries(chances), len(chances))
    return tuple(_effect(case, prices, margin, error) for case in cases)


def _case(region: ComparedRegion, prices: Prices, margin: float) -> _Case:
    base, other = region.base, region.other
    if base.ensemble.misses.keys() != other.ensemble.misses.keys():
        raise ValueError(f"{region.name}: the kernels have not the same kinds of misses")
    in_order = in_order_of(base.ensemble, other.ensemble)
    paired = in_order is not None
    if in_order is not None:
        other = msgspec.structs.replace(other, ensemble=in_order)
    pair = _pair(base, other, box(prices, tuple(base.ensemble.misses)), paired=paired)
    word, strength = _claim(pair, margin)
    case = _Case(region, other, pair, word, strength, None)
    if _nothing_to_test(case) is not None or not _drawn(pair):
        return case
    return msgspec.structs.replace(case, chance=min(1.0, 2 * upper_tail(strength, case.degrees)))


def _pair(base: RegionCost, other: RegionCost, prices: Box, *, paired: bool) -> KernelPair:
    return KernelPair(weigh(base, prices), weigh(other, prices), prices, paired)


def _claim(pair: KernelPair, margin: float) -> tuple[Word, float]:
    """The word that the data speak for most, and how many standard errors lie between it and
    doubt at the worst prices; a negative number where they speak for none.
    """
    most = 1 + margin
    strengths = {
        Word.SLOWER: pair.slower(most).strength(strict=True),
        Word.FASTER: pair.faster(most).strength(strict=True),
        Word.SAME: min(one.strength(strict=False) for one in pair.same(most)),
    }
    word = max(strengths, key=lambda word: strengths[word])
    return word, strengths[word]


def _drawn(pair: KernelPair) -> bool:
    """Whether one layout costs other than the next, so that draws decide."""
    sides = (pair.base.draws, pair.other.draws)
    return any(np.ptp(draws, axis=0).any() for draws in sides if len(draws))


def _nothing_to_test(case: _Case) -> CycleVerdict | None:
    """The verdict where draws cannot or need not decide."""
    region = case.region
    if _same_code(region):
        return CycleVerdict(Word.SAME)
    if _has_one_run(region):
        return CycleVerdict(
            Word.UNRESOLVED, reason="one run on a side has no spread: --perturb makes more"
        )
    if case.pair.prices.kinds and min(case.layouts) < 2:
        return CycleVerdict(Word.UNRESOLVED, layouts=2, reason="one layout has no spread")
    return None


def _has_one_run(region: ComparedRegion) -> bool:
    """Whether nothing is known of the path's spread in one of the kernels."""
    executed = [*region.base.executed.values(), *region.other.executed.values()]
    return any(one.n < 2 for one in executed)


def _same_code(region: ComparedRegion) -> bool:
    """Whether the change itself can have no effect, so that whatever differs is placement."""
    return region.code is CodeChange.RELINKED or (
        region.code is CodeChange.SAME and _same_path(region)
    )


def _same_path(region: ComparedRegion) -> bool:
    """Whether the effect on all that is executed is zero, or within the runs' spread. What data
    misses is not asked: with the same path it depends on where data lie.
    """
    names = (region.base.executed.keys() | region.other.executed.keys()) - set(DATA_MISS_KINDS)
    effects = [
        Quantity(region.base.amount(name), region.other.amount(name)).effect for name in names
    ]
    return not any(map(is_seen, effects))


def _verdict(
    case: _Case,
    shipped: KernelPair,
    prices: Prices,
    misses: Mapping[str, ComparedEnsembles],
    *,
    margin: float,
    error: float,
) -> CycleVerdict:
    decided = _nothing_to_test(case)
    if decided is not None:
        if decided.word is Word.SAME:
            return _same_or_placement(case, shipped, margin, error)
        return decided
    settled = case.strength > 0 if case.chance is None else case.chance <= error
    if not settled:
        return _by_counts(case, _unresolved(case, prices, margin, error), misses)
    if case.word is not Word.SAME:
        return CycleVerdict(case.word)
    if _same_path(case.region):
        return _same_or_placement(case, shipped, margin, error)
    return CycleVerdict(Word.SAME, within=margin)


def _same_or_placement(
    case: _Case, shipped: KernelPair, margin: float, error: float
) -> CycleVerdict:
    """The word where the change has no effect: what differs beyond the margin is placement."""
    moved = "" if _same_path(case.region) else "addresses move the path too"
    if min(one.strength(strict=False) for one in shipped.same(1 + margin)) < 0:
        return CycleVerdict(Word.PLACEMENT_ONLY, reason=moved)
    if _same_code(case.region):
        if case.word is not Word.SAME and 2 * upper_tail(case.strength, case.degrees) <= error:
            return CycleVerdict(
                Word.PLACEMENT_ONLY,
                reason=moved or "the layouts differ as a whole, as by their alignment",
            )
        if shipped.cycles(0) == Interval(0, 0):
            return CycleVerdict(Word.SAME, within=0.0)
    return CycleVerdict(Word.SAME, within=margin, reason=moved)


def _by_counts(
    case: _Case, unresolved: CycleVerdict, misses: Mapping[str, ComparedEnsembles]
) -> CycleVerdict:
    """The verdict where prices, spread or too few layouts settle none: what counts alone say."""
    effects = [misses[kind].effect for kind in case.pair.prices.kinds]
    if nothing_grows(case.region.base, case.other, effects):
        reason = f"nothing that is counted grows; not called faster, since {unresolved.reason}"
        return msgspec.structs.replace(unresolved, word=Word.NOT_SLOWER, reason=reason)
    return unresolved


def _guessed(case: _Case, prices: Prices) -> tuple[str, ...]:
    sides = (case.region.base, case.other)
    of_data = [kind for kind in prices.guesses if any(side.amount(kind).value for side in sides)]
    kinds = [kind for kind in case.pair.prices.kinds if not prices.misses[kind].calibrated]
    return (*kinds, *of_data)


def _unresolved(case: _Case, prices: Prices, margin: float, error: float) -> CycleVerdict:
    """Why the data do not speak for one word: too few layouts, or what more of them do not help."""
    if case.strength >= 0:
        reach = two_sided(error, case.degrees) + _POWER
        weakest = reach * math.sqrt(max(case.layouts) / _MOST_LAYOUTS)
        if case.strength < weakest:
            return CycleVerdict(Word.UNRESOLVED, reason="the effect is as large as the margin")
        return CycleVerdict(
            Word.UNRESOLVED,
            layouts=math.ceil(max(case.layouts) * (reach / case.strength) ** 2),
            reason="layouts differ too much for so few",
        )
    exact = msgspec.structs.replace(
        case.pair, base=without_spread(case.pair.base), other=without_spread(case.pair.other)
    )
    box = case.pair.prices
    middle = (box.low + box.high) / 2
    fixed = msgspec.structs.replace(
        case.pair, prices=msgspec.structs.replace(box, low=middle, high=middle)
    )
    if _claim(exact, margin)[1] > 0:
        reason = "it depends on the path's spread over perturbed runs"
    elif _claim(fixed, margin)[1] > 0:
        reason = _on_executed(case, prices)
    else:
        reason = "it depends on what a miss costs"
        if guessed := _guessed(case, prices):
            reason += _unmeasured(guessed)
    return CycleVerdict(Word.UNRESOLVED, reason=reason)


def _unmeasured(kinds: Sequence[str]) -> str:
    return f"; this CPU's file has no measured cost of {', '.join(kinds)}"


def _on_executed(case: _Case, prices: Prices) -> str:
    """Why no word holds at all prices of what does not change with the layout."""
    sides = (case.region.base, case.other)
    if not any(side.amount(kind).value for side in sides for kind in FIXED):
        return "it depends on what special instructions and string operations cost"
    reason = "it depends on what special instructions, string operations and misses of data cost"
    guessed = [kind for kind in _guessed(case, prices) if kind in FIXED]
    return reason + (_unmeasured(guessed) if guessed else "")


def _effect(case: _Case, prices: Prices, margin: float, error: float) -> PlacementEffect:
    errors = two_sided(error, case.degrees)
    base, other, pair = case.region.base, case.other, case.pair
    shipped = KernelPair(
        weigh_shipped(base, pair.prices), weigh_shipped(other, pair.prices), pair.prices
    )
    layout_cycles = [
        _compared(base, other, corner(pair.prices, index), errors, paired=pair.paired, keep=keep)
        for index, keep in ((0, False), (-1, True))
    ]
    misses = {
        kind: _compared(base, other, _unit(kind), errors, paired=pair.paired, keep=True)
        for kind in base.ensemble.misses
    }
    cycles, relative = pair.cycles(errors), pair.relative(errors)
    if _has_one_run(case.region) and not _same_code(case.region):
        # What one run executed is exact for that run alone.
        cycles, relative = Interval(-math.inf, math.inf), Interval(-1.0, math.inf)
    return PlacementEffect(
        region=case.region.name,
        verdict=_verdict(case, shipped, prices, misses, margin=margin, error=error),
        layouts=case.layouts,
        paired=pair.paired,
        margin=margin,
        confidence=1 - error,
        without_measured_cost=_guessed(case, prices),
        misses=misses,
        data=_amounts(case, (kind for kind in DATA_MISS_KINDS if kind in base.executed)),
        data_cycles=_data_cycles(base, other, prices),
        hidden=layout_cycles[0],
        exposed=layout_cycles[1],
        cycles=cycles,
        relative=relative,
        as_linked=AsLinked(
            cycles=shipped.cycles(0),
            relative=shipped.relative(0),
            placement=_placement(shipped, pair, errors),
        ),
        unpriced=_amounts(case, unpriced_changes(base, other, prices)),
        relinked=case.region.code is CodeChange.RELINKED,
    )


def _amounts(case: _Case, names: Iterable[str]) -> dict[str, ComparedEnsembles]:
    """What no layout changes, of both kernels."""
    base, other = case.region.base, case.other
    return {name: _fixed(base.amount(name), other.amount(name)) for name in names}


def _fixed(base: Estimate, other: Estimate) -> ComparedEnsembles:
    """A figure that is the same in all layouts."""
    sides = [float(one.value) for one in (base, other)]
    draws = [Draws(one, one, one, one, one, None) for one in sides]
    diff = sides[1] - sides[0]
    return ComparedEnsembles(draws[0], draws[1], Bounds(diff, diff, diff))


def _data_cycles(base: RegionCost, other: RegionCost, prices: Prices) -> Interval | None:
    """What of the effect is due to misses of data; None where they are not known."""
    if not any(kind in base.executed for kind in FIXED):
        return None
    ends = []
    for kind in FIXED:
        if kind in prices.executed:
            price = believed(prices, kind)
            diff = float(other.amount(kind).value - base.amount(kind).value)
            ends.append(sorted((diff * price.low, diff * price.high)))
    return Interval(math.fsum(low for low, _ in ends), math.fsum(high for _, high in ends))


def _unit(kind: str) -> Box:
    """Prices by which a cost is a number of misses."""
    nothing: Floats = np.zeros(0)
    return Box((), nothing, nothing, (kind,), np.ones((1, 1)))


def _compared(
    base: RegionCost, other: RegionCost, prices: Box, errors: float, *, paired: bool, keep: bool
) -> ComparedEnsembles:
    """Both ensembles at one corner; `keep` their draws, too."""
    pair = _pair(base, other, prices, paired=paired)
    sides = [
        _draws(weighed.draws[:, 0], weigh_shipped(cost, prices), prices, keep=keep)
        for cost, weighed in ((base, pair.base), (other, pair.other))
    ]
    interval = pair.cycles(errors)
    value = sides[1].mean - sides[0].mean
    return ComparedEnsembles(sides[0], sides[1], Bounds(value, interval.low, interval.high))


def _draws(layouts: Floats, shipped: Weighed, prices: Box, *, keep: bool) -> Draws:
    executed = float(shipped.amounts @ (prices.low + prices.high)) / 2
    one = float(shipped.mean[0])
    known = layouts if len(layouts) else shipped.mean
    return Draws(
        mean=executed + float(known.mean()),
        least=executed + float(known.min()),
        median=executed + float(np.median(known)),
        most=executed + float(known.max()),
        as_linked=executed + one,
        percentile=percentile(layouts, one) if len(layouts) else None,
        draws=tuple((executed + layouts).tolist()) if keep and np.ptp(known) else (),
    )


def _placement(shipped: KernelPair, drawn: KernelPair, errors: float) -> Interval:
    """How the layouts as linked lie in their ensembles, other less base, over all prices."""
    value = (shipped.other.mean - drawn.other.mean) - (shipped.base.mean - drawn.base.mean)
    reach = errors * drawn.slower(1.0).error
    return Interval(float(np.min(value - reach)), float(np.max(value + reach)))


def nothing_grows(base: RegionCost, other: RegionCost, misses: Iterable[Bounds]) -> bool:
    """Return whether the other kernel has no more of anything that is counted.

    Model cycles are a sum of counts times prices, and no price is negative: so they cannot grow
    either, whatever the prices are.

    misses: the effect on each kind of miss that has a price, with the interval that is shown. Its
    whole interval must lie at or below zero, and so must the effect on all that is executed, by the
    sum of both ranges over the runs: special instructions without a price and misses of data, too.
    """
    names = base.executed.keys() | other.executed.keys()
    return all(_most(base.amount(name), other.amount(name)) <= 0 for name in names) and all(
        effect.high <= 0 for effect in misses
    )


def unpriced_changes(base: RegionCost, other: RegionCost, prices: Prices) -> tuple[str, ...]:
    """Return the special instructions without a price whose number changes by more than the runs'
    spread.
    """
    return tuple(
        name
        for name in sorted((base.executed.keys() | other.executed.keys()) - prices.executed.keys())
        if _most(base.amount(name), other.amount(name)) < 0
        or _most(other.amount(name), base.amount(name)) < 0
    )


def _most(base: Estimate, other: Estimate) -> float:
    """By how much it grows at most; the path's spread counts as in a contrast of costs."""
    return float(other.value - base.value + ((base.high - base.low) + (other.high - other.low)))
