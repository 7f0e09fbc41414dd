# SPDX-License-Identifier: GPL-2.0-or-later
"""What a search over a series knows at one point, and which kernels it wants next."""

import enum
from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction

import msgspec

from kdelta.infer.search.additive import Combination, added, less, minus
from kdelta.infer.search.proof import ProofPlan
from kdelta.infer.search.search_model import (
    NOTHING,
    Candidate,
    Failed,
    FlipSet,
    Limits,
    Observation,
    PlannedBuild,
    Step,
    View,
)
from kdelta.infer.search.search_words import few_of

TRIES = 4
"""How many sets are tried where sets fail, for a patch or a stretch of them."""


class Leaf(enum.StrEnum):
    """What is known of a stretch that is not split any more."""

    ONE = "one"
    SAME = "same"
    GROUP = "group"
    OPEN = "open"


class PatchStretch(msgspec.Struct, frozen=True):
    """The patches from place `low` on, `high` left out; `inside` are those of them that are
    searched. `reason`: why a group is one.
    """

    low: int
    high: int
    inside: tuple[str, ...]
    leaf: Leaf
    reason: str = ""


class Attempt(msgspec.Struct, frozen=True):
    """How a view of some patches went. `effect` is None where it could not be had, and `wanted`
    the kernel that would say more; `others` come or go with them; `reason`: why they have to.
    """

    effect: Combination | None
    others: tuple[str, ...] = ()
    reason: str = ""
    wanted: FlipSet | None = None


class SeriesPlan(ProofPlan):
    """The state of a search for patches."""

    def __init__(
        self,
        patches: Sequence[Candidate],
        observed: Sequence[Observation],
        views: Collection[View],
        limits: Limits,
    ) -> None:
        super().__init__(patches, observed, limits)
        self.order = [patch.name for patch in patches]
        self.views = views
        self.searched = [
            patch.name for patch in patches if self.proof_held is False or not patch.pruned
        ]
        self.stretches = list(self._broken_down(0, len(self.order)))
        self.plan(self._wanted())

    # What is needed

    def with_dependents(self, names: Collection[str]) -> FlipSet:
        """Return these patches and all that do not apply without them."""
        gone = frozenset(names)
        return gone | {n for n in self.order if not gone.isdisjoint(self.candidates[n].needs)}

    def prefix(self, place: int) -> FlipSet:
        """Return the patches before that place."""
        return frozenset(self.order[:place])

    # What is the same

    def same(self, one: FlipSet, other: FlipSet) -> bool:
        """Return whether two measured kernels execute the same: in every region within the spread,
        and in every function of which perturbed runs agree.
        """
        if not self.kernels.same(one, other):
            return False
        parts = self.kernels.parts[one], self.kernels.parts[other]
        for region, functions in parts[0].items():
            others = parts[1].get(region, {})
            for name in functions.keys() | others.keys():
                figures = functions.get(name), others.get(name)
                steady = all(each is None or each.low == each.high for each in figures)
                values = [each.value if each else 0 for each in figures]
                if steady and values[0] != values[1]:
                    return False
        return True

    # In order

    def _broken_down(self, low: int, high: int) -> Iterator[PatchStretch]:
        wanted = set(self.searched)
        inside = tuple(name for name in self.order[low:high] if name in wanted)
        if len(inside) < 2 or self.same(self.prefix(low), self.prefix(high)):
            yield PatchStretch(low, high, inside, Leaf.ONE if len(inside) == 1 else Leaf.SAME)
            return
        cuts = [self.order.index(name) + 1 for name in inside[:-1]]
        good = [cut for cut in cuts if self.prefix(cut) in self.kernels]
        if good:
            cut = min(good, key=lambda one: abs(2 * cuts.index(one) - len(cuts) + 1))
            yield from self._broken_down(low, cut)
            yield from self._broken_down(cut, high)
            return
        failed = {cut: self.kernels.failed.get(self.prefix(cut)) for cut in cuts}
        reasons = {cut: found for cut, found in failed.items() if found is not None}
        leaf = Leaf.OPEN
        if len(reasons) == len(cuts) or len(reasons) >= self.limits.tries:
            leaf = Leaf.GROUP
        yield PatchStretch(low, high, inside, leaf, self._why_group(reasons))

    def _why_group(self, failed: dict[int, Failed]) -> str:
        if not failed:
            return ""
        cut = max(failed)
        more = f", and so do {len(failed) - 1} trees before it" if len(failed) > 1 else ""
        return f"the tree up to {self.order[cut - 1]} fails: {failure_clause(failed[cut])}{more}"

    def _next_cut(self, stretch: PatchStretch) -> int:
        """The middle; after failures the point that is farthest from them and from the ends."""
        cuts = [self.order.index(name) + 1 for name in stretch.inside[:-1]]
        failed = [cuts.index(cut) for cut in cuts if self.kernels.failed.get(self.prefix(cut))]
        taken = [-1, len(cuts), *failed]
        free = [place for place in range(len(cuts)) if place not in failed]
        return cuts[max(free, key=lambda place: (min(abs(place - one) for one in taken), -place))]

    def _stretch_build(self, stretch: PatchStretch) -> PlannedBuild:
        cut = self._next_cut(stretch)
        name = self.order[cut - 1]
        reason = f"all up to {name}: which of {few_of(stretch.inside)} it is"
        return PlannedBuild(self.prefix(cut), Step.ORDER, reason)

    def size(self, stretch: PatchStretch) -> Fraction:
        """How much a stretch changes, as the sum over regions of parts of their cost."""
        ends = self.prefix(stretch.high), self.prefix(stretch.low)
        effects = self.kernels.estimates(minus(*ends))
        base = self.kernels.first
        parts = [abs(e.value) / base[n].value for n, e in effects.items() if base[n].value > 0]
        return sum(parts, Fraction(0))

    def effect(self, stretch: PatchStretch) -> Combination:
        """What the patches of a stretch do on top of those before it."""
        return minus(self.prefix(stretch.high), self.prefix(stretch.low))

    def matters(self, stretch: PatchStretch) -> bool:
        """Whether a stretch that is not split does anything."""
        ends = self.prefix(stretch.low), self.prefix(stretch.high)
        return stretch.leaf is not Leaf.SAME and not self.same(*ends)

    # The other views

    def attempt(self, view: View, names: tuple[str, ...]) -> Attempt:
        """How a view of a patch or a group stands."""
        return self._left_out(names) if view is View.LEFT_OUT else self._alone(names)

    def _left_out(self, names: tuple[str, ...]) -> Attempt:
        gone = self.with_dependents(names)
        reason = ""
        if gone != frozenset(names):
            reason = f"{few_of(gone - frozenset(names))} does not apply without it"
        later = [n for n in self.order if not set(names).isdisjoint(self.candidates[n].suspects)]
        for extra in [None, *(name for name in later if name not in gone)][: self.limits.tries]:
            if extra is not None:
                gone = self.with_dependents(gone | {extra})
            left = self.everything - gone
            others = self._in_order(gone - frozenset(names))
            if left in self.kernels:
                return Attempt(minus(self.everything, left), others, reason)
            failure = self.kernels.failed.get(left)
            if failure is None:
                return Attempt(None, others, reason, wanted=left)
            reason = reason or f"without it {failure_clause(failure)}"
        return Attempt(None, (), reason)

    def _alone(self, names: tuple[str, ...]) -> Attempt:
        chosen = self.needs.closure(names)
        reason = ""
        if chosen != frozenset(names):
            reason = f"it does not apply without {few_of(chosen - frozenset(names))}"
        suspects = [one for name in names for one in self.candidates[name].suspects]
        for extra in [None, *(one for one in suspects if one not in chosen)][: self.limits.tries]:
            if extra is not None:
                chosen = self.needs.closure(chosen | {extra})
            others = chosen - frozenset(names)
            if chosen not in self.kernels:
                failure = self.kernels.failed.get(chosen)
                if failure is None:
                    return Attempt(None, self._in_order(others), reason, wanted=chosen)
                reason = reason or f"alone {failure_clause(failure)}"
                continue
            below = others if others & self.effective else NOTHING
            if below not in self.kernels and self.kernels.failed.get(below) is None:
                return Attempt(None, self._in_order(others), reason, wanted=below)
            if below not in self.kernels:
                reason = f"{reason}; without it {failure_clause(self.kernels.failed[below])}"
                return Attempt(None, self._in_order(others), reason)
            return Attempt(minus(chosen, below), self._in_order(others), reason)
        return Attempt(None, (), reason)

    def _in_order(self, names: FlipSet) -> tuple[str, ...]:
        return tuple(name for name in self.order if name in names)

    @property
    def effective(self) -> FlipSet:
        """Return the patches that do something in order, groups among them."""
        found = [one.inside for one in self.stretches if self.matters(one)]
        return frozenset(name for inside in found for name in inside)

    def viewed(self) -> list[tuple[str, ...]]:
        """The patches and groups that the other views are asked for."""
        return [
            one.inside
            for one in self.stretches
            if one.leaf in (Leaf.ONE, Leaf.GROUP) and self.matters(one)
        ]

    # Interactions

    def leftovers(self) -> tuple[dict[str, Combination], dict[str, Combination]]:
        """For single patches what they do left out that they do not do in order, and in order that
        they do not do alone, where that is more than the spread: with later, with earlier patches.
        """
        later: dict[str, Combination] = {}
        earlier: dict[str, Combination] = {}
        for stretch in self.stretches:
            if stretch.leaf is not Leaf.ONE:
                continue
            (name,) = stretch.inside
            order = self.effect(stretch)
            if View.LEFT_OUT in self.views:
                one = self.attempt(View.LEFT_OUT, (name,))
                if one.effect is not None and not one.others:
                    later[name] = less(one.effect, order)
            if View.ALONE in self.views:
                one = self.attempt(View.ALONE, (name,))
                if one.effect is not None:
                    earlier[name] = less(order, one.effect)
        found = [
            {n: e for n, e in each.items() if self.kernels.is_relevant(e, Fraction(0))}
            for each in (later, earlier)
        ]
        return found[0], found[1]

    def pairs(self) -> list[tuple[str, str]]:
        """Two patches whose leftovers are the same, each in one pair at most."""
        later, earlier = self.leftovers()
        found: list[tuple[str, str]] = []
        taken: set[str] = set()
        for first in later:
            for second in earlier:
                if self.order.index(first) >= self.order.index(second) or second in taken:
                    continue
                if not self.kernels.is_relevant(less(later[first], earlier[second]), Fraction(0)):
                    found.append((first, second))
                    taken.add(second)
                    break
        return found

    def together(self, pair: tuple[str, str]) -> Attempt:
        """Return what two patches do together alone beyond what each does alone."""
        both = self.needs.closure(pair)
        alone = [self.attempt(View.ALONE, (name,)) for name in pair]
        if any(one.effect is None or one.others for one in alone) or both != frozenset(pair):
            return Attempt(None)
        if both not in self.kernels:
            failed = self.kernels.failed.get(both)
            wanted = both if failed is None else None
            return Attempt(None, reason=failure_clause(failed) if failed else "", wanted=wanted)
        return Attempt(less(minus(both, NOTHING), added(one.effect or {} for one in alone)))

    # What is wanted

    def _wanted(self) -> list[PlannedBuild]:
        if self.proof_needed and not self.kernels.is_known(self.kept):
            reason = f"the {len(self.searched)} patches that were not ruled out must have its path"
            return [PlannedBuild(self.kept, Step.PROOF, reason)]
        pending = [one for one in self.stretches if one.leaf is Leaf.OPEN]
        if pending:
            pending.sort(key=lambda one: (-self.size(one), one.low))
            return [self._stretch_build(one) for one in pending]
        steps = {View.LEFT_OUT: Step.LEFT_OUT, View.ALONE: Step.WITHOUT_OTHERS}
        found = []
        for view, step in steps.items():
            for names in self.viewed() if view in self.views else ():
                one = self.attempt(view, names)
                if one.wanted is not None:
                    more = f", with {few_of(one.others)}" if one.others else ""
                    text = f"{few_of(names)} {step.value}{more}"
                    found.append(PlannedBuild(one.wanted, step, text))
        return found or [
            PlannedBuild(one.wanted, Step.PAIR, f"{' and '.join(pair)} alone: do they interact")
            for pair in self.pairs()
            if (one := self.together(pair)).wanted is not None
        ]


def failure_clause(failed: Failed) -> str:
    """How a kernel failed, in a clause."""
    if failed.detail.startswith(failed.status.value):
        return failed.detail
    return f"{failed.status.value}: {failed.detail}" if failed.detail else failed.status.value
