# SPDX-License-Identifier: GPL-2.0-or-later
"""Two ways to decide about units: one at a time, and by halves, where groups of units that together
do nothing are cleared by one build.

One at a time, each unit has a pair of kernels that differ by nothing else, a build a unit. Most are
flipped alone in A. What needs one unit that itself is flipped alone goes on top of that. What needs
several would take two builds from A; it is taken out of the kernel with everything flipped instead,
and those that depend on it before it.

By halves, the units stand in a row that stays closed under needs; each kernel has the first so
many of them flipped. Two kernels of the row with the same cost clear all units between them; where
they differ, a kernel from the middle is built, until the units that do something stand alone. With
n units a row takes n - 1 kernels at most, and about d log2(n / d) where d of them matter.

Halving assumes that effects do not cancel exactly, in every region, within a group; and as each
unit is seen on top of those before it, a few more builds (`check_sets`) look at them without these.
"""

import itertools
import math
from collections.abc import Collection, Mapping, Sequence

import msgspec

from kdelta.counts.by_key import by_key
from kdelta.infer.search.additive import ObservedKernels
from kdelta.infer.search.evidence import Evidence
from kdelta.infer.search.needs import Needs
from kdelta.infer.search.search_model import NOTHING, FlipSet, How

Pair = tuple[FlipSet, FlipSet]
"""The kernel with a unit, and the one without it."""


def pairs_for(
    needs: Needs, kernels: ObservedKernels, top: FlipSet, units: Sequence[str], tries: int
) -> dict[str, Pair]:
    """For each unit the pair to complete; without those for which `tries` kernels failed.

    units   those to decide, in an order in which each comes after its needs
    top     a measured kernel with all of them flipped
    """
    found: dict[str, Pair] = {}
    planned: set[FlipSet] = set(kernels.measured)
    shrunk = top
    for name in units:
        below = needs.below(name)
        pair = below | {name}, below
        if below in planned and pair[0] not in kernels.failed:
            found[name] = pair
            planned.add(pair[0])
    for name in reversed([name for name in units if name not in found]):
        pair = shrunk, shrunk - {name}
        if _possible(needs, kernels, pair, name) and pair[1] not in kernels.failed:
            found[name] = pair
            shrunk = pair[1]
        elif other := _around(needs, kernels, name, tries):
            found[name] = other
    return found


def _possible(needs: Needs, kernels: ObservedKernels, pair: Pair, name: str) -> bool:
    more, below = pair
    return name in more and needs.is_closed(below) and not set(pair) & set(kernels.failed)


def _around(needs: Needs, kernels: ObservedKernels, name: str, tries: int) -> Pair | None:
    """The pair nearest to A of which one kernel is there; else the unit on top of its needs."""
    if sum(_besides(needs, kernels, flips, name) for flips in kernels.failed) >= tries:
        return None
    pairs = [(flips | {name}, flips - {name}) for flips in kernels.measured]
    found = [
        pair for pair in pairs if needs.is_closed(pair[0]) and _possible(needs, kernels, pair, name)
    ]
    if found:
        return min(found, key=lambda pair: (len(pair[1]), sorted(pair[1])))
    below = needs.below(name)
    pair = below | {name}, below
    return None if set(pair) & set(kernels.failed) else pair


def _besides(needs: Needs, kernels: ObservedKernels, failed: FlipSet, name: str) -> bool:
    """Whether a failed kernel was the other side of a measured one, or the unit's first choice."""
    return failed ^ {name} in kernels or failed == needs.below(name) | {name}


def missing(pair: Pair, known: Collection[FlipSet]) -> list[FlipSet]:
    """Which kernels of a pair are to be built."""
    return [flips for flips in reversed(pair) if flips not in known]


_FACTORS = tuple(math.exp(step * 0.75) for step in range(-5, 6))
"""By how much the odds of all priors may be wrong, together."""
_DOUBT = 1.5  # the standard deviation of that factor's logarithm: priors are guesses


class Segment(msgspec.Struct, frozen=True):
    """Neighbouring measured kernels of the row, and the units between them, in order."""

    below: FlipSet
    more: FlipSet
    units: tuple[str, ...]
    same: bool


def row_of(order: Sequence[str], kernels: ObservedKernels) -> list[Segment]:
    """The segments of a screening. `order` is closed under needs from any point on."""
    points = [frozenset(order[:place]) for place in range(len(order) + 1)]
    known = [place for place, flips in enumerate(points) if flips in kernels]
    return [
        Segment(
            points[low],
            points[high],
            tuple(order[low:high]),
            kernels.same(points[high], points[low]),
        )
        for low, high in itertools.pairwise(known)
    ]


def middle(
    segment: Segment, priors: Mapping[str, float], failed: Collection[FlipSet], tries: int
) -> FlipSet | None:
    """The kernel that parts the segment best, of those that did not fail; None after too many
    failures.
    """
    points = {
        place: segment.below.union(segment.units[:place]) for place in range(1, len(segment.units))
    }
    open_places = [place for place, flips in points.items() if flips not in failed]
    if len(points) - len(open_places) >= tries or not open_places:
        return None
    best = _half([priors[name] for name in segment.units])
    return points[min(open_places, key=lambda place: abs(place - best))]


def _half(chances: Sequence[float]) -> int:
    """Where to part a segment (1 to n - 1): equally likely on both sides to be without effect."""
    masses = [-math.log1p(-chance) for chance in chances]
    passed = list(itertools.accumulate(masses, initial=0.0))
    return min(
        range(1, len(masses)), key=lambda place: abs(passed[-1] - 2 * passed[place]), default=1
    )


class Prospect(msgspec.Struct, frozen=True):
    """How many more builds either way takes, as far as can be expected."""

    halving: float
    one_at_a_time: float

    @property
    def prefers_halving(self) -> bool:
        """Whether to go on halving."""
        return self.halving < self.one_at_a_time


def prospect(
    row: Sequence[Segment],
    kernels: ObservedKernels,
    priors: Mapping[str, float],
    evidence: Mapping[str, Evidence],
    pending: Collection[str],
) -> Prospect:
    """Compares halving the open segments with taking their units one at a time. `pending` are the
    units that are not decided. The priors are scaled by what was seen so far.
    """
    open_segments = [one for one in row if not one.same and set(one.units) & set(pending)]
    singles = [evidence[name] for name in priors if name in evidence]
    moving = [name for name, one in evidence.items() if _moves(one, kernels)]
    still = [
        name
        for name, one in evidence.items()
        if one.how is not How.INFERRED and not _moves(one, kernels)
    ]
    weights, halving = [], []
    for factor in _FACTORS:
        chance = {name: _scaled(prior, factor) for name, prior in priors.items()}
        likely = -((math.log(factor) / _DOUBT) ** 2) / 2
        likely += sum(math.log(chance[name]) for name in moving if name in chance)
        likely += sum(math.log1p(-chance[name]) for name in still if name in chance)
        likely += sum(math.log(_any([chance[n] for n in one.units])) for one in open_segments)
        builds, culprits = 0.0, float(len(moving))
        for one in open_segments:
            chances = [chance[name] for name in one.units]
            builds += _tree(chances) / _any(chances)
            culprits += sum(chances) / _any(chances)
        weights.append(likely)
        halving.append(builds + check_count(culprits))
    most = max(weights)
    shares = [math.exp(weight - most) for weight in weights]
    expected = sum(share * builds for share, builds in zip(shares, halving, strict=True))
    checks = check_count(sum(one.how is How.DIFFERENCE for one in singles))
    return Prospect(expected / sum(shares), len(pending) + checks)


def _moves(evidence: Evidence, kernels: ObservedKernels) -> bool:
    seen = evidence.how in {How.ALONE, How.DIFFERENCE}
    return seen and not kernels.same(evidence.more, evidence.below)


def _scaled(prior: float, factor: float) -> float:
    chance = min(max(prior, 0.001), 0.999)
    odds = factor * chance / (1 - chance)
    return odds / (1 + odds)


def _any(chances: Sequence[float]) -> float:
    """The chance that any of them happens."""
    return -math.expm1(sum(math.log1p(-chance) for chance in chances))


def _tree(chances: Sequence[float]) -> float:
    """The builds that parting takes: one for each part of two or more in which something moves."""
    if len(chances) < 2:
        return 0.0
    half = _half(chances)
    return _any(chances) + _tree(chances[:half]) + _tree(chances[half:])


def check_count(culprits: float) -> float:
    """How many builds `check_sets` takes, about."""
    return 0.0 if culprits < 1 else 2 + math.log2(culprits)


def seen_on_top(
    kernels: ObservedKernels, order: Sequence[str], evidence: Mapping[str, Evidence]
) -> tuple[list[str], list[str]]:
    """Units of which it is known only what they do on top of others that they do not need: those
    that do something, and those that were cleared on top of any that do something.
    """
    culprits, cleared = [], []
    for name in order:
        one = evidence.get(name)
        if one is None or one.how not in {How.DIFFERENCE, How.CLEARED}:
            continue
        if _moves(one, kernels):
            culprits.append(name)
        elif not kernels.same(one.below, NOTHING):
            cleared.append(name)
    return culprits, cleared


def by_what_they_need(
    needs: Needs, kernels: ObservedKernels, names: Sequence[str], evidence: Mapping[str, Evidence]
) -> list[FlipSet]:
    """Kernels that have all of the units, each with no unit that does something but those that it
    needs: one kernel for those that need the same of them.
    """
    moving = {name for name, one in evidence.items() if _moves(one, kernels)}
    groups = by_key((needs.below(name) & moving, name) for name in names)
    return [needs.closure(group) for group in groups.values()]


def check_sets(needs: Needs, culprits: Sequence[str]) -> list[FlipSet]:
    """Kernels that have each of the units without others that stand before it in the row.

    Number the units from 1, in order; the kernel of bit b has those whose number has that bit. Of
    two units the later one's number has a bit that the earlier one's has not: so one kernel has it
    without the other, and as many builds as the last number has bits see any pair.
    """
    return [
        needs.closure(name for place, name in enumerate(culprits, 1) if place >> bit & 1)
        for bit in range(len(culprits).bit_length())
    ]
