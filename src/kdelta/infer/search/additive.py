# SPDX-License-Identifier: GPL-2.0-or-later
"""Sums and differences of measured kernels: what units cost if their effects add up.

Every effect is a combination of kernels (which, how often, plus or minus), and becomes a figure
only at the end: a kernel that stands on both sides then cancels together with its spread.
"""

import math
import statistics
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import cached_property

import msgspec

from kdelta.counts.by_key import by_key
from kdelta.infer.effects.by_region import RunsByIndex, is_doubtful
from kdelta.infer.effects.chance import ENOUGH
from kdelta.infer.effects.estimate import (
    FEWEST,
    MEAN,
    ZERO,
    Estimate,
    around,
    effect_between,
    estimate,
    is_seen,
    is_steady,
    run_means,
    widest,
)
from kdelta.infer.effects.pairs import FEWEST_TO_SAY, effect_by_index
from kdelta.infer.search.search_model import (
    Failed,
    FlipSet,
    JudgedPath,
    Measured,
    Outcome,
    Pair,
    Parts,
    RegionSum,
)

Combination = dict[FlipSet, int]
"""Kernels, by what is flipped in them, with how often each is added; none stands with 0."""


def minus(more: FlipSet, less: FlipSet) -> Combination:
    """One kernel less another."""
    return {} if more == less else {more: 1, less: -1}


def added(parts: Iterable[Combination]) -> Combination:
    """The sum of combinations."""
    times = by_key(one for part in parts for one in part.items())
    return {flips: sum(each) for flips, each in times.items() if sum(each)}


def less(one: Combination, *others: Combination) -> Combination:
    """A combination less others."""
    return added([one, *({flips: -times for flips, times in part.items()} for part in others)])


def pair_of(value: Combination) -> Pair | None:
    """Return the two kernels of which the second less the first is an effect; None for others."""
    if sorted(value.values()) != [-1, 1]:
        return None
    one, other = sorted(value, key=lambda flips: value[flips])
    return one, other


class ObservedKernels:
    """The kernels that were observed. The first one is A.

    A range over three runs is often small by luck, and a search looks at dozens of regions in
    dozens of kernels, which are much alike. So a range counts as no less than the median of all
    kernels' ranges in that region. By a simulation of normal spreads, two equal kernels then part
    in 0.6 % of regions with three kernels, in 0.06 % with twenty, rather than in 1.2 %. Where more
    than half of the kernels repeat exactly, nothing is added. With runs enough for their order to
    decide, it is their order that does (`effect_between`). Kernels of one version are judged by
    what they differ by under each perturbation, where their runs are known.

    A difference between two kernels that chance may have made (chance.py) has an interval that
    reaches zero, and so has what such a difference is a part of. `doubted` are the pairs of kernels
    that compare would decide; what it says of two kernels counts for these.
    """

    def __init__(self, observed: Iterable[tuple[FlipSet, Outcome]]) -> None:
        self.measured: dict[FlipSet, Mapping[str, Estimate]] = {}
        self.parts: dict[FlipSet, Parts] = {}
        self.failed: dict[FlipSet, Failed] = {}
        self.doubted: set[Pair] = set()
        self._compared: dict[Pair, Mapping[str, JudgedPath]] = {}
        self._runs: dict[FlipSet, Mapping[str, RunsByIndex]] = {}
        self._versions: dict[FlipSet, str] = {}
        self._doubts: dict[tuple[str, FlipSet, FlipSet], bool] = {}
        for flips, outcome in observed:
            if isinstance(outcome, Measured):
                self.measured[flips] = outcome.paths
                self.parts[flips] = outcome.parts
                self._runs[flips] = outcome.runs
                self._versions[flips] = outcome.version
                self._compared |= {(one, flips): its for one, its in outcome.judged.items()}
                self.failed.pop(flips, None)
            elif flips not in self.measured:
                self.failed[flips] = outcome
        self.first = next(iter(self.measured.values()))
        self._typical = {
            name: statistics.median_low(
                [
                    paths[name].high - paths[name].low
                    for paths in self.measured.values()
                    if name in paths
                ]
            )
            for name in self.first
        }
        self._same: dict[tuple[FlipSet, FlipSet], bool] = {}

    def __contains__(self, flips: FlipSet) -> bool:
        """Whether that kernel was measured."""
        return flips in self.measured

    def is_known(self, flips: FlipSet) -> bool:
        """Whether anything came of that kernel."""
        return flips in self.measured or flips in self.failed

    def held(self, kept: FlipSet, everything: FlipSet) -> bool | None:
        """Whether what was kept has the path of all; None if that is unknown, or all was kept."""
        return self.same(kept, everything) if kept != everything and kept in self else None

    def parting(self, kept: FlipSet, everything: FlipSet) -> tuple[dict[str, Estimate], str]:
        """The regions in which what was kept has not the path of all, and how exactly it has it."""
        parted = self.estimates(minus(everything, kept))
        exact = all(one.exact and one.value == 0 for one in parted.values())
        how = "exactly" if exact else "within the spread of perturbations"
        return {region: one for region, one in parted.items() if is_seen(one)}, how

    def same(self, one: FlipSet, other: FlipSet) -> bool:
        """Whether two measured kernels cost the same in every region: the effect's interval holds
        zero. A region that only one of them has is a difference.
        """
        key = (one, other)
        if key not in self._same:
            paths = self.measured[one], self.measured[other]
            self._same[key] = paths[0].keys() == paths[1].keys() and not any(
                is_seen(self._between(name, one, other)) and not self._is_doubtful(name, one, other)
                for name in paths[0]
            )
        return self._same[key]

    def unjudged(self, pairs: Iterable[Pair]) -> frozenset[Pair]:
        """Return those of these pairs, and of those that are doubted, that compare did not judge
        and can, as runs are known.
        """
        asked = set(pairs)
        return frozenset(
            pair
            for pair in asked.union(one for one in self.doubted if one[::-1] not in asked)
            if pair[0] != pair[1]
            and all(self._runs.get(one) for one in pair)
            and self._compared.keys().isdisjoint((pair, pair[::-1]))
        )

    def code(self, one: FlipSet, other: FlipSet) -> dict[str, dict[str, Fraction]]:
        """Return by region what functions cost more whose code differs, where runs vary by more."""
        found = self._compared.get((one, other), {})
        return {region: judged.code for region, judged in found.items() if judged.code}

    def _judged_in(self, region: str, one: FlipSet, other: FlipSet) -> JudgedPath | None:
        """Return what compare says of a pair of kernels, in whatever order it was asked."""
        if found := self._compared.get((one, other), {}).get(region):
            return found
        if found := self._compared.get((other, one), {}).get(region):
            return msgspec.structs.replace(found, effect=-found.effect)
        return None

    def _between(self, region: str, one: FlipSet, other: FlipSet) -> Estimate:
        """Return what the other costs more, as far as compare, pairs or ranges say."""
        value = self._value(region, minus(other, one))
        if judged := self._judged_in(region, one, other):
            return _reaching(judged.effect, value)
        if paired := self._by_pairs(region, minus(other, one)):
            return paired
        before, after = self.measured[one][region], self.measured[other][region]
        if min(before.n, after.n) >= FEWEST:
            return _reaching(effect_between(before, after), value)
        far = self._range(region, before) + self._range(region, after)
        return around(value, far, min(before.n, after.n))

    def _value(self, region: str, combination: Combination) -> Fraction:
        """Return a combination's figure: those of parts add up."""
        shifts = self._shifts.get(region, {})
        return sum(
            (
                times * (self.measured[flips][region].value + shifts.get(flips, ZERO))
                for flips, times in combination.items()
            ),
            ZERO,
        )

    @cached_property
    def _shifts(self) -> dict[str, dict[FlipSet, Fraction]]:
        """By region and kernel, by how much its cost is taken for more than its runs say, so that
        it differs from its neighbours by what compare found, which had more runs of them: first
        from those that are most alike, and that were compared last.
        """
        latest = list(reversed(self._compared))
        pairs = sorted(latest, key=lambda pair: len(pair[0] ^ pair[1]))
        return {region: self._shifted(region, pairs) for region in self.first}

    def _shifted(self, region: str, pairs: Iterable[Pair]) -> dict[FlipSet, Fraction]:
        groups = {flips: {flips: ZERO} for flips in self.measured}
        for one, other in pairs:
            judged, ours, theirs = self._compared[one, other], groups[one], groups[other]
            if region not in judged or ours is theirs:
                continue
            known = self.measured[other][region].value - self.measured[one][region].value
            apart = judged[region].effect.value - known + ours[one] - theirs[other]
            if next(iter(self.measured)) in theirs:  # A's cost is what its runs say
                ours, theirs, apart = theirs, ours, -apart
            ours |= {flips: shift + apart for flips, shift in theirs.items()}
            groups |= dict.fromkeys(theirs, ours)
        return {flips: its[flips] for flips, its in groups.items()}

    def _are_alike(self, combination: Combination) -> bool:
        """Return whether all of these kernels are of one version."""
        versions = {self._versions.get(flips, "") for flips in combination}
        return len(versions) == 1 and "" not in versions

    def _by_pairs(self, region: str, combination: Combination) -> Estimate | None:
        """Return a combination in a region by its figure under each perturbation that all of its
        kernels were run with; None for kernels that are not alike, and for less than two.
        """
        if not self._are_alike(combination):
            return None
        rows = [(self._runs[flips].get(region, {}), times) for flips, times in combination.items()]
        common = [
            index
            for index in rows[0][0]
            if index >= 0
            and all(index in row for row, _ in rows)
            and len({row[index].iteration_count for row, _ in rows}) == 1
        ]
        differences = {
            index: sum((times * row[index].mean_own_insns() for row, times in rows), ZERO)
            for index in common
        }
        return _of_pairs(differences, self._value(region, combination))

    def _is_doubtful(self, region: str, one: FlipSet, other: FlipSet) -> bool:
        """Whether chance may have made a difference that is more than the ranges."""
        if judged := self._judged_in(region, one, other):
            return not judged.firm
        key = (region, one, other)
        if key not in self._doubts:
            runs = [self._runs[flips].get(region, {}) for flips in (one, other)]
            alike = self._are_alike(minus(one, other))
            self._doubts[key] = all(runs) and is_doubtful(runs[0], runs[1], alike=alike)
            if self._doubts[key] and any(len(its) < ENOUGH for its in runs):
                self.doubted.add((min(one, other, key=_rank), max(one, other, key=_rank)))
        return self._doubts[key]

    def sums(self, whole: Combination, explained: Combination) -> dict[str, RegionSum]:
        """Each region's account, of those that all kernels of both combinations have."""
        rows = [self.estimates(part) for part in (whole, explained, less(whole, explained))]
        return {
            name: RegionSum(one, rows[1][name], rows[2][name], self.first[name], self.widest(name))
            for name, one in rows[0].items()
            if name in rows[1] and name in rows[2]
        }

    def with_mean(self, combination: Combination) -> dict[str, Estimate]:
        """Return the same with the mean over regions as `MEAN`, in per cent of A, where all runs of
        these kernels are known: over the regions whose runs are steady in all kernels.
        """
        found = self.estimates(combination)
        costs, over, runs = self._over
        if any(flips not in over.measured for flips in combination) or not costs:
            return found
        mean = over.estimates(combination)[MEAN]
        if self._are_alike(combination):
            mean = _of_pairs(_sums(combination, runs), mean.value) or mean
        doubt = sum(
            (
                100 * abs(value) / (abs(cost.value) * len(costs))
                for name, cost in costs.items()
                for value in self._doubts_in(name, combination)
            ),
            ZERO,
        )
        found[MEAN] = Estimate(mean.value, mean.low - doubt, mean.high + doubt, mean.n)
        return found

    def mean_sum(self, whole: Combination, explained: Combination) -> RegionSum | None:
        """The account of the mean over regions, as that of a region; None where it is not known.

        Sums of many kernels are calculated perturbation by perturbation, if there are runs enough.
        A report has one such sum. Effects of single units, and of regions, are many, of which
        `_by_run` would call one in a hundred an effect by chance; these go by ranges.
        """
        rest = less(whole, explained)
        _, over, runs = self._over
        means = [
            (_by_run(part, runs) if len(part) > 2 else None) or self.with_mean(part).get(MEAN)
            for part in (whole, explained, rest)
        ]
        if means[0] is None or means[1] is None or means[2] is None:
            return None
        return RegionSum(means[0], means[1], means[2], over.first[MEAN], over.widest(MEAN))

    @cached_property
    def _over(
        self,
    ) -> "tuple[dict[str, Estimate], ObservedKernels, dict[FlipSet, dict[int, Fraction]]]":
        """The costs in A of the regions that are in means; each kernel's mean over them as if it
        was a region; and the same of each run by the index of its perturbation.
        """
        costs = {
            name: cost
            for name, cost in self.first.items()
            if cost.value
            and all(name in runs for runs in self._runs.values())
            and is_steady(self.widest(name))
        }
        means = {
            flips: run_means(
                {
                    name: {at: one.mean_own_insns() for at, one in runs[name].items()}
                    for name in costs
                },
                costs,
            )
            for flips, runs in self._runs.items()
        }
        if not costs or not all(means.values()):
            return {}, self, {}
        over = ObservedKernels(
            (flips, Measured({MEAN: estimate(list(its.values()))})) for flips, its in means.items()
        )
        return costs, over, means

    def widest(self, region: str) -> Estimate:
        """Return the region's cost in the kernel whose runs vary most; in A, with how far pairs
        vary, where kernels are alike and that is steady.
        """
        found = widest(paths[region] for paths in self.measured.values() if region in paths)
        return found if is_steady(found) else self._steady_by_pairs(region) or found

    def _steady_by_pairs(self, region: str) -> Estimate | None:
        """Return the region's cost in A, and how far the intervals of differences from it reach;
        None where they reach too far, or are not known of all kernels.
        """
        first, *others = (flips for flips, paths in self.measured.items() if region in paths)
        effects = [self._by_pairs(region, minus(flips, first)) for flips in others]
        known = [one.half_width for one in effects if one is not None]
        if not known or len(known) < len(effects):
            return None
        cost = self.first[region]
        apart = around(cost.value, max(known), cost.n)
        return apart if is_steady(apart) else None

    def estimates(self, combination: Combination) -> dict[str, Estimate]:
        """Return the combination's figure in each region of A that all of its kernels have.

        Kernels that are alike give their figure under each perturbation. Of others, two give the
        sum of both ranges on either side, as `effect_between` does. Of more kernels, whose ranges
        are independent, that is too wide: it is at most the root of twice the sum of their squares,
        which is the same for two kernels of equal range. To either comes what any two of the
        kernels differ by that chance may have made.
        """
        held = [self.measured[flips] for flips in combination]
        return {
            name: self._judged(name, combination)
            for name in self.first
            if all(name in paths for paths in held)
        }

    def _judged(self, region: str, combination: Combination) -> Estimate:
        """The figure in a region, whose interval reaches zero if chance may have made it."""
        if pair := pair_of(combination):
            effect = self._between(region, *pair)
        else:
            effect = self._by_pairs(region, combination) or self._estimate(region, combination)
        if not is_seen(effect):
            return effect
        doubt = sum(map(abs, self._doubts_in(region, combination)), ZERO)
        return Estimate(effect.value, effect.low - doubt, effect.high + doubt, effect.n)

    def _doubts_in(self, region: str, combination: Combination) -> list[Fraction]:
        """What pairs of its kernels differ by that chance may have made."""
        pairs = [(pair, self._between(region, *pair)) for pair in _paired(combination)]
        return [
            effect.value
            for pair, effect in pairs
            if is_seen(effect) and self._is_doubtful(region, *pair)
        ]

    def in_doubt(self, region: str, combination: Combination) -> bool:
        """Whether chance may have made a part of what kernels differ by in a region."""
        held = all(region in self.measured[flips] for flips in combination)
        return held and bool(self._doubts_in(region, combination))

    def _range(self, region: str, path: Estimate) -> Fraction:
        return max(path.high - path.low, self._typical.get(region, ZERO))

    def _estimate(self, region: str, combination: Combination) -> Estimate:
        parts = [(self.measured[k][region], times) for k, times in combination.items()]
        if not parts:
            return Estimate(ZERO, ZERO, ZERO, self.first[region].n)
        value = self._value(region, combination)
        ranges = [abs(times) * self._range(region, path) for path, times in parts]
        reach = sum(ranges, ZERO)
        if len(parts) > 2 and reach:
            reach = min(reach, _root(2 * sum((one * one for one in ranges), ZERO)))
        return around(value, reach, min(path.n for path, _ in parts))

    def is_relevant(self, combination: Combination, relevance: Fraction) -> bool:
        """Whether a combination is more than its spread, and more than that part of A's cost, in
        any region.
        """
        return any(
            is_seen(effect) and abs(effect.value) > relevance * abs(self.first[name].value)
            for name, effect in self.estimates(combination).items()
        )


def _reaching(effect: Estimate, value: Fraction) -> Estimate:
    """Return an effect with the figure that adds up, and an interval that holds both."""
    low, high = min(value, effect.low), max(value, effect.high)
    return msgspec.structs.replace(effect, value=value, low=low, high=high)


def _rank(flips: FlipSet) -> tuple[int, list[str]]:
    return len(flips), sorted(flips)


def _by_run(
    combination: Combination, runs: Mapping[FlipSet, Mapping[int, Fraction]]
) -> Estimate | None:
    """A combination in each perturbation that all of its kernels were run with, and the range over
    these; None with too few of them.

    The same perturbation moves all kernels alike, and so cancels. Ranges of kernels would count it
    once for each: nine units, of which each is A and one more, have A eight times. The range over n
    perturbations leaves out their median with a probability of 2 ** (1 - n). What chance makes of
    a region differs from run to run, and so is in the range.
    """
    found = _sums(combination, runs)
    return estimate(list(found.values())) if len(found) >= ENOUGH else None


def _sums(
    combination: Combination, runs: Mapping[FlipSet, Mapping[int, Fraction]]
) -> dict[int, Fraction]:
    """Return a combination by the perturbations that all of its kernels were run with."""
    known = [{at for at in runs.get(flips, ()) if at >= 0} for flips in combination]
    return {
        at: sum((times * runs[flips][at] for flips, times in combination.items()), ZERO)
        for at in sorted(set.intersection(*known) if known else ())
    }


def _of_pairs(differences: Mapping[int, Fraction], value: Fraction) -> Estimate | None:
    """Return a figure, of all runs so that parts add up, with the interval that differences of
    pairs have; None of less than two.
    """
    if len(differences) < FEWEST_TO_SAY:
        return None
    found = effect_by_index(differences)
    far = found.half_width + abs(found.value - value)
    return msgspec.structs.replace(found, value=value, low=value - far, high=value + far)


def _paired(combination: Combination) -> list[tuple[FlipSet, FlipSet]]:
    """Each kernel that is taken away with one that is added, those first that are most alike."""
    below = [flips for flips, times in combination.items() for _ in range(-times)]
    above = [flips for flips, times in combination.items() for _ in range(times)]
    pairs = []
    while below and above:
        one, other = min(
            ((low, high) for low in below for high in above),
            key=lambda pair: (len(pair[0] ^ pair[1]), sorted(pair[0]), sorted(pair[1])),
        )
        pairs.append((one, other))
        below.remove(one)
        above.remove(other)
    return pairs


def _root(square: Fraction) -> Fraction:
    """The square root, to a millionth, rounded up."""
    return Fraction(math.isqrt(math.ceil(square * 10**12)) + 1, 10**6)
