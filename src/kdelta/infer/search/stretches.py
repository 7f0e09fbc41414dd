# SPDX-License-Identifier: GPL-2.0-or-later
"""Stretches of a history: commits whose effects together are known from kernels that were measured.

If effects add up, a kernel's path is that of the good end and the effects of the candidates that
it holds. The two ends tell what all of them do together. Any other kernel parts one stretch in two,
if it holds the others whole or not at all; so merges need no rules of their own. A stretch that has
no effect need not be whole: it is taken to have none anywhere in it.

Which candidates are at or below which commit, what a kernel of that commit holds, stands in bits.
Commits with the same bits hold the same candidates, so any of them does for the others. Commits of
side branches may lack part of what the good end has: each commit of the good end's past at which a
branch of the range begins has a bit of its own, so that such kernels are never taken for others.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property

import msgspec

from kdelta.counts.by_key import by_key
from kdelta.infer.effects.estimate import ZERO, Estimate, is_seen
from kdelta.infer.search.additive import Combination, ObservedKernels, added, less, minus, pair_of
from kdelta.infer.search.search_model import Alike, FlipSet, Measured, Observation, Parents, Wants

Bits = int
"""A set of candidates, and of places where branches begin."""


class Ancestry:
    """The bits of a history's commits.

    at        bits -> the commits that hold them, first those that others are made on
    old       the bits of the places where branches begin
    """

    def __init__(self, parents: Parents, good: str, bad: str, candidates: Collection[str]) -> None:
        self.parents = parents
        self.good = good
        self.bad = bad
        above = made_on(parents, bad) - made_on(parents, good)
        starts = {parent for commit in above for parent in parents[commit]} - above | {good}
        self.range = [commit for commit in parents if commit in above]
        wanted = frozenset(candidates)
        self.candidates = [commit for commit in self.range if commit in wanted]
        known = [commit for commit in parents if commit in starts]
        unknown = sorted(starts - parents.keys())
        named = [*unknown, *known, *self.candidates]
        self._bit = {commit: 1 << place for place, commit in enumerate(named)}
        self._named = named
        self.bits: dict[str, Bits] = {commit: self._bit[commit] for commit in unknown}
        same: dict[Bits, Bits] = {}
        for commit, its in parents.items():
            held = self._bit.get(commit, 0)
            for parent in its:
                held |= self.bits.get(parent, 0)
            self.bits[commit] = same.setdefault(held, held)
        self.old = sum(self._bit[commit] for commit in starts)
        self.at = by_key((self.bits[commit], commit) for commit in (*unknown, *known, *self.range))

    def commits(self, bits: Bits) -> Iterator[str]:
        """The candidates of a set, the oldest first."""
        bits &= ~self.old
        while bits:
            lowest = bits & -bits
            yield self._named[lowest.bit_length() - 1]
            bits ^= lowest

    def bits_of(self, commits: Collection[str]) -> Bits:
        """The set of those that are candidates."""
        return sum({self._bit.get(commit, 0) for commit in commits}) & ~self.old

    @cached_property
    def depth(self) -> dict[str, int]:
        """How many merges one must go into to get from the bad end to a commit."""
        found = {self.bad: 0}
        for commit in reversed(self.range):
            its = found.get(commit)
            if its is None:
                continue
            for place, parent in enumerate(self.parents[commit]):
                found[parent] = min(found.get(parent, its + 1), its + bool(place))
        return found


def made_on(parents: Parents, commit: str) -> set[str]:
    """Return a commit and all that it is made on, as far as that is known."""
    found = {commit}
    pending = [commit]
    while pending:
        for parent in parents.get(pending.pop(), ()):
            if parent in parents and parent not in found:
                found.add(parent)
                pending.append(parent)
    return found


_BETWEEN = "\0"


def kernel(commit: str) -> FlipSet:
    """The name of a commit's kernel among others."""
    return frozenset({commit})


class Size(msgspec.Struct, frozen=True, order=True):
    """How large an effect is, as the part of a region's cost where it is most; `moved` from some
    functions to others, where regions have none.
    """

    region: Fraction = ZERO
    moved: Fraction = ZERO

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.region or self.moved)


class StretchJudge:
    """The measured kernels, and which effects matter."""

    def __init__(self, observed: Sequence[Observation], wants: Wants, alike: Alike) -> None:
        self.wants = wants
        self._alike = alike
        self.measured = {
            name: one.outcome
            for one in observed
            if isinstance(one.outcome, Measured)
            for name in one.flips
        }
        self.regions = ObservedKernels((one.flips, one.outcome) for one in observed)
        self.functions = ObservedKernels(
            [(kernel(name), Measured(paths)) for name, paths in self._flat().items()]
        )
        self._sizes: dict[frozenset[tuple[FlipSet, int]], Size] = {}
        self._placed: dict[tuple[str, str], bool] = {}

    def _flat(self) -> dict[str, dict[str, Estimate]]:
        """Each kernel's functions in the regions that matter; what is not executed is zero."""
        found = {
            commit: {
                f"{region}{_BETWEEN}{name}": path
                for region, functions in outcome.parts.items()
                if self._counts(region)
                for name, path in functions.items()
            }
            for commit, outcome in self.measured.items()
        }
        names = dict.fromkeys(name for paths in found.values() for name in paths)
        nothing = {
            commit: Estimate(ZERO, ZERO, ZERO, min((path.n for path in paths.values()), default=1))
            for commit, paths in found.items()
        }
        return {
            commit: {name: paths.get(name, nothing[commit]) for name in names}
            for commit, paths in found.items()
        }

    def _counts(self, region: str) -> bool:
        return self.wants.regions is None or region in self.wants.regions

    def changed_functions(self, value: Combination) -> dict[str, dict[str, Estimate]]:
        """By region and function, those that changed by more than their spread, of the regions of
        which chance did not make it.
        """
        found: dict[str, dict[str, Estimate]] = {}
        for key, effect in self.functions.estimates(value).items():
            if is_seen(effect):
                region, _, name = key.partition(_BETWEEN)
                found.setdefault(region, {})[name] = effect
        return {
            region: its for region, its in found.items() if not self.regions.in_doubt(region, value)
        }

    def size(self, value: Combination) -> Size:
        """How large an effect is; nothing if it is within spread or margin in each region."""
        key = frozenset(value.items())
        if key not in self._sizes:
            self._sizes[key] = self._size(value)
        return self._sizes[key]

    def _size(self, value: Combination) -> Size:
        region = max(
            (
                self._part(name, effect.value)
                for name, effect in self.regions.estimates(value).items()
                if self._counts(name) and is_seen(effect)
            ),
            default=ZERO,
        )
        moved = max(
            (
                self._part(name, sum((abs(one.value) for one in functions.values()), ZERO) / 2)
                for name, functions in self.changed_functions(value).items()
            ),
            default=ZERO,
        )
        return Size(region, ZERO if region else moved)

    def _part(self, region: str, value: Fraction) -> Fraction:
        """As a part of the region's cost in the good end; zero within the margin."""
        cost = abs(self.regions.first[region].value) if region in self.regions.first else ZERO
        part = abs(value) / cost if cost else Fraction(bool(value))
        return part if part > self.wants.margin_of(region) else ZERO

    def placed(self, value: Combination) -> tuple[str, str] | None:
        """Return the two kernels whose difference an effect is, if there is one and they hold
        nothing different that was executed.
        """
        pair = pair_of(value)
        if pair is None or not self.size(value):
            return None
        below, above = (next(iter(one)) for one in pair)
        if (below, above) not in self._placed:
            self._placed[below, above] = self._alike(below, above)
        return (below, above) if self._placed[below, above] else None

    def matters(self, value: Combination) -> bool:
        """Whether an effect is one that has to be explained by a commit."""
        return bool(self.size(value)) and self.placed(value) is None

    def parts(self, value: Combination) -> bool:
        """Whether it is one in a region, not only between functions."""
        return bool(self.size(value).region) and self.placed(value) is None


class Stretch(msgspec.Struct, frozen=True):
    """Candidates, and what they do together."""

    bits: Bits
    value: Combination

    @property
    def count(self) -> int:
        """How many candidates."""
        return self.bits.bit_count()


class StretchAccount:
    """The stretches that what was measured parts a history in.

    contradiction   two measured kernels that hold the same candidates and differ, or None
    """

    def __init__(self, ancestry: Ancestry, judge: StretchJudge) -> None:
        self.ancestry = ancestry
        self.judge = judge
        self.contradiction: tuple[str, str] | None = None
        good, bad = ancestry.good, ancestry.bad
        self._held = {name: ancestry.bits[name] for name in judge.measured}
        # The candidates alone, where the ends have all of what is old or its same part.
        between = (self._held[bad] & ~self._held[good]) & ~ancestry.old
        whole = minus(kernel(bad), kernel(good))
        self.stretches = [Stretch(between, whole)] if between else []
        self._states: dict[tuple[Bits, int], Combination | None] = {}
        self._part()
        self._check()

    @cached_property
    def significant(self) -> list[Stretch]:
        """Those with an effect that matters, the largest first."""
        found = [one for one in self.stretches if self.judge.matters(one.value)]
        return sorted(found, key=lambda one: self.judge.size(one.value), reverse=True)

    def _part(self) -> None:
        """Parts stretches by each measured kernel, until none does any more."""
        ends = self.ancestry.good, self.ancestry.bad
        pending = [name for name in self._held if name not in ends]
        progress = True
        while progress:
            progress = False
            for name in list(pending):
                while self._parted_by(name):
                    progress = True
                if not self._crossed(self._held[name], self.stretches):
                    pending.remove(name)

    def _parted_by(self, name: str) -> bool:
        held = self._held[name]
        crossed = self._crossed(held, self.stretches)
        significant = [one for one in crossed if self.judge.matters(one.value)]
        for one in significant or (crossed if len(crossed) == 1 else []):
            state = self.state(held & ~one.bits)
            if state is None:
                continue
            part = less({kernel(name): 1}, state)
            if not significant and not self.judge.matters(part):
                return False
            inside = one.bits & held
            place = self.stretches.index(one)
            self.stretches[place : place + 1] = [
                Stretch(inside, part),
                Stretch(one.bits & ~held, less(one.value, part)),
            ]
            self.__dict__.pop("significant", None)
            self._states.clear()
            return True
        return False

    @staticmethod
    def _crossed(held: Bits, stretches: Iterable[Stretch]) -> list[Stretch]:
        return [one for one in stretches if (held & one.bits) not in (0, one.bits)]

    def state(self, held: Bits) -> Combination | None:
        """The path of a kernel that holds these; None if nothing is known. One that was measured is
        itself; else it is the nearest one and the effects of the stretches between them.
        """
        key = (held, len(self.stretches))
        if key not in self._states:
            self._states[key] = self._state(held)
        return self._states[key]

    def _state(self, held: Bits) -> Combination | None:
        old = self.ancestry.old
        near = sorted(
            ((held ^ other).bit_count(), name)
            for name, other in self._held.items()
            if not (held ^ other) & old
        )
        for _, name in near:
            steps = self._steps(self._held[name], held)
            if steps is not None:
                return added([{kernel(name): 1}, *steps])
        return None

    def _steps(self, here: Bits, there: Bits) -> list[Combination] | None:
        """The effects between two sets; None if they part a stretch that has one."""
        differ = here ^ there
        steps: list[Combination] = []
        for one in self.stretches:
            common = differ & one.bits
            if not common or self.judge.placed(one.value):
                continue
            if common == one.bits and (there & one.bits) in (0, one.bits):
                steps.append(one.value if there & one.bits else less({}, one.value))
            elif self.judge.matters(one.value):
                return None
        return steps

    def _check(self) -> None:
        """Looks for measured kernels that are not what their stretches say."""
        for name, held in self._held.items():
            if self._crossed(held, self.significant):
                continue
            twins = [other for other, its in self._held.items() if its == held and other != name]
            for other in twins:
                if self.judge.parts(minus(kernel(name), kernel(other))):
                    self.contradiction = (other, name)
                    return
