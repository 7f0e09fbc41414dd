# SPDX-License-Identifier: GPL-2.0-or-later
"""A search by code: its kernels, what they say, and those that settle what they leave open.

Every unit gets a number, its code; the kernel of a bit has the units flipped whose code has that
bit. What a unit does then shows in just the kernels of its code (decode.py). A unit can be
flipped only with those that it needs, so their codes have all the bits of its own, and more.

Where functions' costs are known this takes about log2(n) kernels for n units, however many matter.
What these leave open by more than matters is settled by single units: the one that does most where
most is open is flipped alone, which is one more figure for each function.
"""

import functools
import operator
import random
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property

from kdelta.infer.effects.estimate import ZERO, Estimate, around
from kdelta.infer.search.additive import ObservedKernels, minus
from kdelta.infer.search.decode import Decoding, Term, decode_differences
from kdelta.infer.search.needs import Needs
from kdelta.infer.search.search_model import NOTHING, FlipSet, Limits, PlannedBuild, Step
from kdelta.infer.search.search_words import alone_text, few_of

LOW = 0.2
"""Up to this chance to matter a unit shares its code with others."""

MOST = 0.35
"""The chances of the units of a group add up to no more: it seldom has to be parted."""

SETTLING = 1.5
"""How many kernels what is left open takes, about."""

_TRIES = 200


def code_sets(needs: Needs, groups: Sequence[FlipSet]) -> tuple[FlipSet, ...]:
    """The kernels of a code, as few as distinguish the groups; each closed under needs. The kernel
    with all of them flipped counts as one that is there already, so that one may be in no other.

    groups   units that move together; all of them must be closed under needs. Raises ValueError for
             two groups that need each other.
    """
    above = _above(needs, groups)
    bits = code_length(len(groups))
    while (codes := _codes(above, bits)) is None:
        bits += 1
    sets = [
        NOTHING.union(
            *(group for group, code in zip(groups, codes, strict=True) if code >> bit & 1)
        )
        for bit in range(bits)
    ]
    everything = NOTHING.union(*groups)
    return tuple(one for one in sets if one and one != everything)


def code_length(groups: int) -> int:
    """How many kernels `code_sets` takes where no group needs another."""
    return max(1, (groups - 1).bit_length()) if groups else 0


def low_groups(
    needs: Needs, units: Sequence[str], priors: Mapping[str, float]
) -> tuple[FlipSet, ...]:
    """The units, those that are unlikely to matter in groups that are unlikely to. `units` are in
    an order in which each comes after its needs.
    """
    groups: list[FlipSet] = []
    chance, together = 0.0, NOTHING
    for name in units:
        if priors[name] > LOW:
            groups.append(frozenset({name}))
            continue
        if together and chance + priors[name] > MOST:
            groups.append(together)
            chance, together = 0.0, NOTHING
        chance, together = chance + priors[name], together | {name}
    if together:
        groups.append(together)
    try:
        _above(needs, groups)
    except ValueError:
        return tuple(frozenset({name}) for name in units)
    return tuple(groups)


def _above(needs: Needs, groups: Sequence[FlipSet]) -> dict[int, set[int]]:
    """For each group those that need it, each after all that need it."""
    below = [needs.closure(group) - group for group in groups]
    above = {
        i: {j for j, other in enumerate(below) if other & groups[i]} for i in range(len(groups))
    }
    ordered: dict[int, set[int]] = {}
    while len(ordered) < len(groups):
        ready = [i for i in above if i not in ordered and above[i] <= ordered.keys()]
        if not ready:
            raise ValueError("groups of units need each other")
        ordered.update({i: above[i] for i in ready})
    return ordered


def _codes(above: Mapping[int, set[int]], bits: int) -> list[int] | None:
    """A number below 2 ** bits for each group, all different; None if none were found.

    Those on which others depend come last: theirs must have the bits of all of these. Kernels that
    have half of the groups tell most, so codes with half of the bits are taken first, and 0, which
    is seen in the whole alone, last. Where many depend on several, chance finds what this does not.
    """
    chance = random.Random(bits)
    free = sorted(range(1, 1 << bits), key=lambda code: (abs(2 * code.bit_count() - bits), code))
    free.append(0)
    for _ in range(_TRIES):
        codes = _assigned(above, list(free))
        if codes is not None:
            return [codes[i] for i in range(len(above))]
        free.sort(key=lambda code: (chance.random() * code.bit_count(), code))
    return None


def _assigned(above: Mapping[int, set[int]], free: list[int]) -> dict[int, int] | None:
    """Gives each group the first free code that has all bits of those that need it."""
    codes: dict[int, int] = {}
    for index, others in above.items():
        wanted = functools.reduce(operator.or_, (codes[other] for other in others), 0)
        found = next((code for code in free if code & wanted == wanted), None)
        if found is None:
            return None
        codes[index] = found
        free.remove(found)
    return codes


class Coded:
    """What a search by code knows and wants. `kernels` holds what was measured;
    `settled` is how many kernels were built to settle what the code left open.
    """

    def __init__(
        self,
        needs: Needs,
        units: Sequence[str],
        kernels: ObservedKernels,
        *,
        limits: Limits,
        priors: Mapping[str, float],
        settled: int = 0,
    ) -> None:
        self._settled = settled
        self._needs = needs
        self._units = tuple(units)
        self._top = frozenset(units)
        self._kernels = kernels
        # Units outside were ruled out, and the proof held: a kernel says the same without them.
        self._parts = {flips: one for flips, one in kernels.parts.items() if flips <= self._top}
        self._limits = limits
        self.groups = low_groups(needs, self._units, priors)

    @cached_property
    def sets(self) -> tuple[FlipSet, ...]:
        """The kernels of the code."""
        return code_sets(self._needs, self.groups)

    @property
    def expected_builds(self) -> float:
        """How many kernels it takes, about."""
        return code_length(len(self.groups)) + SETTLING

    @property
    def failed(self) -> bool:
        """Whether a kernel of the code did not come to be: then this is no way to search."""
        return any(flips in self._kernels.failed for flips in self.sets)

    @property
    def complete(self) -> bool:
        """Whether all of the code's kernels were measured."""
        return all(flips in self._parts for flips in self.sets)

    @cached_property
    def decoding(self) -> Decoding:
        """What the kernels say, as far as they are there."""
        return decode_differences(self._units, self._parts)

    def wanted(self) -> list[PlannedBuild]:
        """The kernels of the code that are not there, then those that settle the rest."""
        missing = [flips for flips in self.sets if not self._kernels.is_known(flips)]
        if missing:
            count = len(self._units)
            why = "which kernels differ shows whose doing it is"
            return [
                PlannedBuild(flips, Step.CODED, f"{few_of(flips)} ({len(flips)} of {count}): {why}")
                for flips in missing
            ]
        return self._settling()

    def _settling(self) -> list[PlannedBuild]:
        """A kernel that parts the classes that matter, else the unit that is the likeliest to
        settle most of what is open, alone from A. No more than the code itself took and two: by
        then it is a spread that three runs did not show.
        """
        if self._settled >= len(self.sets) + 2:
            return []
        if halves := self._halves():
            text = f"{few_of(halves)}: which of those that were flipped together it was"
            return [PlannedBuild(halves, Step.SETTLE, text)]
        left = self.left_over()
        weights: dict[str, Fraction] = {}
        effects = self.effects
        for term, regions in effects.items():
            share = sum((left[r] for r in regions if r in left), ZERO)
            for name in term:
                weights[name] = max(weights.get(name, ZERO), share)
        moved = {n: sum(map(abs, effects.get(frozenset({n}), {}).values()), ZERO) for n in weights}
        for name in sorted(weights, key=lambda one: (-weights[one], -moved[one], one)):
            flips = self._needs.closure([name])
            if weights[name] and not self._kernels.is_known(flips):
                text = alone_text(name, flips, self._needs.below(name), self._top)
                return [PlannedBuild(flips, Step.SETTLE, f"{text}: to settle what is left open")]
        return []

    def _halves(self) -> FlipSet:
        """The first half of each class that does more than is looked for; none if no such kernel is
        left to build.
        """
        chosen = [
            name
            for term in self.decoding.classes
            if len(term) > 1 and self._matters(term)
            for name in self._needs.in_order(term, {})[: len(term) // 2]
        ]
        flips = self._needs.closure(chosen)
        return NOTHING if self._kernels.is_known(flips) else flips

    def _matters(self, term: Term) -> bool:
        return any(
            abs(value) > max(self.reach(region), self._limits.relevance * abs(base.value))
            for region, value in self.effects.get(term, {}).items()
            if (base := self._kernels.first.get(region)) is not None
        )

    def left_over(self) -> dict[str, Fraction]:
        """By region, the part of A's cost that is unexplained in some kernel, where it is more
        than the spread and than what matters.
        """
        found = {}
        effects = self.effects
        for region, base in self._kernels.first.items():
            least = max(self.reach(region), self._limits.relevance * abs(base.value))
            rest = max(
                (
                    abs(paths[region].value - base.value - _sum(effects, flips, region))
                    for flips, paths in self._kernels.measured.items()
                    if flips <= self._top and region in paths
                ),
                default=ZERO,
            )
            if rest > least and base.value:
                found[region] = rest / abs(base.value)
        return found

    def reach(self, region: str) -> Fraction:
        """How far an effect in a region may be off: as far as two kernels that differ may be."""
        return self._reaches.get(region, ZERO)

    @cached_property
    def _reaches(self) -> dict[str, Fraction]:
        whole = self._kernels.estimates(minus(self._top, NOTHING))
        return {region: effect.half_width for region, effect in whole.items()}

    @cached_property
    def effects(self) -> dict[Term, dict[str, Fraction]]:
        """What each term does in each region, as far as functions show."""
        return self.decoding.effects()

    def estimates(self, term: Term) -> dict[str, Estimate]:
        """What a term does in each region; zero within the spread if nothing was seen of it."""
        effects = self.effects.get(term, {})
        return {
            region: around(effects.get(region, ZERO), self.reach(region), cost.n)
            for region, cost in self._kernels.first.items()
        }

    def together(self) -> list[Term]:
        """Classes of more than one unit that do something."""
        return [term for term in self.decoding.classes if len(term) > 1 and term in self.effects]

    def interactions(self) -> list[Term]:
        """Units that do something only together."""
        return [term for term in self.effects if term not in self.decoding.classes]


def _sum(effects: Mapping[Term, Mapping[str, Fraction]], flips: FlipSet, region: str) -> Fraction:
    """What all terms add up to in a kernel."""
    return sum((row.get(region, ZERO) for term, row in effects.items() if term <= flips), ZERO)
