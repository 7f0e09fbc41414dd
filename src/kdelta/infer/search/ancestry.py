# SPDX-License-Identifier: GPL-2.0-or-later
"""Which candidates are at or below which commit, as bits: what a kernel of that commit holds.

Commits with the same bits hold the same candidates, so any of them does for the others. Commits of
side branches may lack part of what the good end has: each commit of the good end's past at which a
branch of the range begins has a bit of its own, so that such kernels are never taken for others.
"""

from collections.abc import Collection, Iterator
from functools import cached_property

from kdelta.infer.search.bisect_model import Parents

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
        below = _below(parents, good)
        above = _below(parents, bad) - below
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
        self.at: dict[Bits, list[str]] = {}
        for commit in (*unknown, *known, *self.range):
            self.at.setdefault(self.bits[commit], []).append(commit)

    def commits(self, bits: Bits) -> Iterator[str]:
        """The candidates of a set, the oldest first."""
        bits &= ~self.old
        while bits:
            lowest = bits & -bits
            yield self._named[lowest.bit_length() - 1]
            bits ^= lowest

    def bits_of(self, commits: Collection[str]) -> Bits:
        """The set of those that are candidates."""
        found = 0
        for commit in commits:
            found |= self._bit.get(commit, 0)
        return found & ~self.old

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


def _below(parents: Parents, commit: str) -> set[str]:
    """A commit and all that it is made on, as far as that is known."""
    found = {commit}
    pending = [commit]
    while pending:
        for parent in parents.get(pending.pop(), ()):
            if parent in parents and parent not in found:
                found.add(parent)
                pending.append(parent)
    return found
