# SPDX-License-Identifier: GPL-2.0-or-later
"""Sums and differences of measured kernels: what units cost if their effects add up.

Every effect is a combination of kernels (which, how often, plus or minus), and becomes a figure
only at the end: a kernel that stands on both sides then cancels together with its spread.
"""

import math
import statistics
from collections.abc import Iterable, Mapping
from fractions import Fraction

from kdelta.infer.estimate import ZERO, Estimate
from kdelta.infer.search_model import Failed, FlipSet, Measured, Outcome

Combination = dict[FlipSet, int]
"""Kernels, by what is flipped in them, with how often each is added; none stands with 0."""


def difference(more: FlipSet, less: FlipSet) -> Combination:
    """One kernel less another."""
    return {} if more == less else {more: 1, less: -1}


def added(parts: Iterable[Combination]) -> Combination:
    """The sum of combinations."""
    total: Combination = {}
    for part in parts:
        for flips, times in part.items():
            total[flips] = total.get(flips, 0) + times
    return {flips: times for flips, times in total.items() if times}


def less(one: Combination, *others: Combination) -> Combination:
    """A combination less others."""
    return added([one, *({flips: -times for flips, times in part.items()} for part in others)])


class Kernels:
    """The kernels that were observed. The first one is A.

    A range over three runs is often small by luck, and a search looks at dozens of regions in
    dozens of kernels, which are much alike. So a range counts as no less than the median of all
    kernels' ranges in that region. By a simulation of normal spreads, two equal kernels then part
    in 0.6 % of regions with three kernels, in 0.06 % with twenty, rather than in 1.2 %. Where more
    than half of the kernels repeat exactly, nothing is added.
    """

    def __init__(self, observed: Iterable[tuple[FlipSet, Outcome]]) -> None:
        self.measured: dict[FlipSet, Mapping[str, Estimate]] = {}
        self.failed: dict[FlipSet, Failed] = {}
        for flips, outcome in observed:
            if isinstance(outcome, Measured):
                self.measured[flips] = outcome.paths
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

    def same(self, one: FlipSet, other: FlipSet) -> bool:
        """Whether two measured kernels cost the same in every region: the effect's interval holds
        nought. A region that only one of them has is a difference.
        """
        key = (one, other)
        if key not in self._same:
            paths = self.measured[one], self.measured[other]
            self._same[key] = paths[0].keys() == paths[1].keys() and all(
                abs(paths[1][name].value - path.value)
                <= self._range(name, path) + self._range(name, paths[1][name])
                for name, path in paths[0].items()
            )
        return self._same[key]

    def estimates(self, combination: Combination) -> dict[str, Estimate]:
        """The combination's figure in each region of A that all of its kernels have.

        Two kernels give the sum of both ranges on either side, as `effect_between` does. Of more
        kernels, whose ranges are independent, that is too wide: it is at most the root of twice the
        sum of their squares, which is the same for two kernels of equal range.
        """
        parts = [(self.measured[flips], times) for flips, times in combination.items()]
        return {
            name: self._estimate(name, [(paths[name], times) for paths, times in parts])
            for name in self.first
            if all(name in paths for paths, _ in parts)
        }

    def _range(self, region: str, path: Estimate) -> Fraction:
        return max(path.high - path.low, self._typical.get(region, ZERO))

    def _estimate(self, region: str, parts: list[tuple[Estimate, int]]) -> Estimate:
        if not parts:
            return Estimate(ZERO, ZERO, ZERO, self.first[region].n)
        value = sum((times * path.value for path, times in parts), ZERO)
        ranges = [abs(times) * self._range(region, path) for path, times in parts]
        reach = sum(ranges, ZERO)
        if len(parts) > 2 and reach:
            reach = min(reach, _root(2 * sum((one * one for one in ranges), ZERO)))
        return Estimate(value, value - reach, value + reach, min(path.n for path, _ in parts))

    def is_relevant(self, combination: Combination, relevance: Fraction) -> bool:
        """Whether a combination is more than its spread, and more than that part of A's cost, in
        any region.
        """
        return any(
            not effect.low <= 0 <= effect.high
            and abs(effect.value) > relevance * abs(self.first[name].value)
            for name, effect in self.estimates(combination).items()
        )


def _root(square: Fraction) -> Fraction:
    """The square root, to a millionth, rounded up."""
    return Fraction(math.isqrt(math.ceil(square * 10**12)) + 1, 10**6)
