# SPDX-License-Identifier: GPL-2.0-or-later
"""What the measured kernels say of each unit, what they leave over when all is added up, and which
units do together what none of them does alone.

A set whose cost is more than A's and its units' effects holds a smallest part of which that is
true. Its units are found one after the other, by the first so many of the set in order, parted
where the suspects are; for a pair among n units that takes about 2 log2(n) kernels, one more than
there are bits in the number of pairs.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from kdelta.infer.effects.estimate import Estimate, is_seen
from kdelta.infer.search.additive import Combination, ObservedKernels, added, less, minus
from kdelta.infer.search.needs import Needs
from kdelta.infer.search.search_model import NOTHING, FlipSet, How, Pair


class Evidence(msgspec.Struct, frozen=True):
    """Two kernels, `more` with the unit and `below` without, that decide about it. `group` are the
    other units by which they differ; `effect` is a combination of kernels.
    """

    how: How
    more: FlipSet
    below: FlipSet
    effect: Combination

    @property
    def group(self) -> FlipSet:
        """The units by which the two kernels differ."""
        return self.more - self.below

    @property
    def pair(self) -> Pair | None:
        """Return both kernels, without the unit first; None where more than two decide."""
        return None if self.how is How.INFERRED else (self.below, self.more)


class Group(msgspec.Struct, frozen=True):
    """Units that no measured kernels distinguish, or that interact, and what they do together."""

    units: FlipSet
    effect: Combination


def nesting(kernels: ObservedKernels) -> list[tuple[FlipSet, FlipSet]]:
    """All measured kernels of which one has all that the other has and more: (more, below)."""
    ordered = sorted(kernels.measured, key=len)
    return [
        (more, below)
        for place, more in enumerate(ordered)
        for below in ordered[:place]
        if below < more
    ]


def find_evidence(
    needs: Needs, kernels: ObservedKernels, units: Iterable[str]
) -> dict[str, Evidence]:
    """For each unit that is decided: by the two kernels that are nearest to A, and among these by
    two that differ by nothing else rather than by a group without effect.
    """
    wanted = frozenset(units)
    found: dict[str, tuple[tuple[int, int, int], Evidence]] = {}

    def offer(name: str, evidence: Evidence) -> None:
        rank = len(evidence.below - needs.below(name)), len(evidence.group), len(evidence.more)
        if name not in found or rank < found[name][0]:
            found[name] = rank, evidence

    nested = nesting(kernels)
    single = [(more, below) for more, below in nested if len(more) == len(below) + 1]
    moving = [pair for pair in single if not kernels.same(*pair)]
    active = NOTHING.union(*(more - below for more, below in moving))
    for more, below in single:
        (name,) = more - below
        if name in wanted:
            how = How.ALONE if below == needs.below(name) else How.DIFFERENCE
            offer(name, Evidence(how, more, below, minus(more, below)))
    for more, below in nested:
        if len(more) == len(below) + 1 or not kernels.same(more, below):
            continue
        # Steps in between that do something cancel each other: such a group clears none.
        if any(below <= low and high <= more for high, low in moving):
            continue
        # Two that do something elsewhere rather cancel each other than do nothing both.
        doing = (more - below) & active
        for name in ((more - below) & wanted) - (doing if len(doing) > 1 else NOTHING):
            offer(name, Evidence(How.CLEARED, more, below, {}))
    return {name: evidence for name, (_, evidence) in found.items()}


class Account:
    """Effects of units, of groups and of interactions, and what a kernel costs beyond them."""

    def __init__(
        self, needs: Needs, kernels: ObservedKernels, units: Sequence[str], top: FlipSet
    ) -> None:
        self.units = tuple(units)
        self.top = top
        self.kernels = kernels
        self.evidence = find_evidence(needs, kernels, units)
        self.interactions: list[Group] = []
        self.groups = self._groups()
        self._infer_single_groups()

    def _groups(self) -> list[Group]:
        """Those that are not decided, in the smallest groups whose sum is known."""
        pending = {name for name in self.units if name not in self.evidence}
        groups: list[Group] = []
        grouped: frozenset[str] = NOTHING
        known = frozenset(self.units)
        nested = [(m, b) for m, b in nesting(self.kernels) if m - b <= known] if pending else []
        while pending:
            best = min(
                (
                    (len((more - below) & pending), len(below), sorted(more - below), more, below)
                    for more, below in nested
                    if (more - below) & pending
                    and all(g.units <= more - below or not g.units & (more - below) for g in groups)
                ),
                default=None,
                key=lambda row: row[:3],
            )
            if best is None:
                break
            more, below = best[3:]
            inside = frozenset((more - below) & pending)
            others = [self._unit(name) for name in more - below - inside - grouped]
            others += [group.effect for group in groups if group.units <= more - below]
            groups.append(Group(inside, less(minus(more, below), *others)))
            grouped |= inside
            pending -= inside
        return groups

    def _infer_single_groups(self) -> None:
        for group in [one for one in self.groups if len(one.units) == 1]:
            (name,) = group.units
            self.evidence[name] = Evidence(How.INFERRED, self.top, NOTHING, group.effect)
            self.groups.remove(group)

    def _unit(self, name: str) -> Combination:
        return self.evidence[name].effect if name in self.evidence else {}

    def explained(self, flips: FlipSet) -> Combination | None:
        """What units, groups and interactions add up to in a kernel; None if it has a part of a
        group only.
        """
        parts = [self._unit(name) for name in flips]
        for group in self.groups:
            if group.units <= flips:
                parts.append(group.effect)
            elif group.units & flips:
                return None
        parts += [one.effect for one in self.interactions if one.units <= flips]
        return added(parts)

    def residual(self, flips: FlipSet) -> Combination | None:
        """What a measured kernel costs beyond A and what is explained; None if unknown."""
        if flips not in self.kernels:
            return None
        explained = self.explained(flips)
        return None if explained is None else less(minus(flips, NOTHING), explained)

    def undecided(self) -> list[str]:
        """Units of which nothing is known, or only by subtraction."""
        return [
            name
            for name in self.units
            if name not in self.evidence or self.evidence[name].how is How.INFERRED
        ]


Test = Callable[[FlipSet], bool | None]
"""Whether a set costs more or less than is explained; None if it was not measured."""


class Question(msgspec.Struct, frozen=True, tag=True):
    """A kernel that has to be built to go on. `known` are the units found so far."""

    flips: FlipSet
    known: tuple[str, ...]


class Culprits(msgspec.Struct, frozen=True, tag=True):
    """A smallest set that is not explained by its parts."""

    units: FlipSet


class Lost(msgspec.Struct, frozen=True, tag=True):
    """The kernels that would decide it did not come to be."""

    units: tuple[str, ...]


def smallest(
    order: Sequence[str],
    weights: Mapping[str, float],
    needs: Needs,
    test: Test,
    failed: Collection[FlipSet],
) -> Question | Culprits | Lost:
    """The smallest part of a set that is not explained, or the kernel to build to find it.

    order    the whole set, of which `test` is true, each unit after those that it needs
    weights  how likely each is to be of that part, to any scale
    """
    found: list[str] = []
    left = list(order)
    while True:
        core = needs.closure(found)
        if found:
            verdict = test(core)
            if verdict:
                return Culprits(core if len(found) == 1 else frozenset(found))
            if verdict is None and core not in failed:
                return Question(core, tuple(found))
            # With more units on top it would be told no longer whether these alone do it.
            if not left or (verdict is None and len(found) > 1):
                return Lost(tuple(found))
        sets = [core | needs.closure(left[:place]) for place in range(len(left) + 1)]
        verdicts = [test(flips) for flips in sets]
        high = next((place for place in range(1, len(sets)) if verdicts[place]), len(left))
        low = max((place for place in range(high) if verdicts[place] is False), default=0)
        between = [place for place in range(low + 1, high) if sets[place] not in failed]
        if between:
            return Question(sets[_middle(between, low, high, left, weights)], tuple(found))
        if high - low > 1:
            return Lost((*found, *left[low:high]))
        found.append(left[high - 1])
        left = left[: high - 1]


def _middle(
    places: Sequence[int], low: int, high: int, left: Sequence[str], weights: Mapping[str, float]
) -> int:
    total = sum(weights[name] for name in left[low:high])
    return min(
        places, key=lambda place: abs(total - 2 * sum(weights[name] for name in left[low:place]))
    )


def suspicion(account: Account, flips: FlipSet, residual: Combination) -> dict[str, float]:
    """How likely each unit is to be of the part of a set that is not explained.

    A unit whose effect others take away, or double, leaves just that effect over; and those that
    do something where something is left over are likelier than others.
    """
    left = account.kernels.estimates(residual)
    moved = {name for name, one in left.items() if is_seen(one)}
    weights = {}
    for name in flips:
        evidence = account.evidence.get(name)
        effects = account.kernels.estimates(evidence.effect) if evidence else {}
        active = {r for r, one in effects.items() if is_seen(one)}
        weights[name] = 1.0
        if active & moved:
            weights[name] = 3.0
            alike = [_alike(effects[r], left[r]) for r in moved if r in effects]
            if active == moved and all(alike):
                weights[name] = 30.0
    return weights


def _alike(effect: Estimate, left: Estimate) -> bool:
    """Whether what is left over is the effect once more, or what takes it away."""
    return abs(abs(effect.value) - abs(left.value)) <= effect.half_width + left.half_width
