# SPDX-License-Identifier: GPL-2.0-or-later
"""What units of a search need: which sets can be flipped, and in which orders."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache

from kdelta.infer.search.search_model import Candidate, FlipSet


class Needs:
    """What units need, followed to the end. Raises ValueError for needs that name no unit, or go
    in a circle.
    """

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self.names = tuple(one.name for one in candidates)
        if len(set(self.names)) < len(self.names):
            raise ValueError("two units have the same name")
        direct = {one.name: one.needs for one in candidates}
        self._below = {name: _followed(name, direct) for name in self.names}

    def below(self, name: str) -> FlipSet:
        """All that must be flipped before the unit."""
        return self._below[name]

    def closure(self, names: Iterable[str]) -> FlipSet:
        """These units and all that they need."""
        chosen = frozenset(names)
        return chosen.union(*(self._below[name] for name in chosen))

    def is_closed(self, flips: FlipSet) -> bool:
        """Whether these units can be flipped, and no others."""
        return all(self._below[name] <= flips for name in flips)

    def in_order(self, names: Collection[str], weights: Mapping[str, float]) -> tuple[str, ...]:
        """The names, each after those of them that it needs, the light ones as early as that
        allows. Equal weights keep the order in which the units were given.
        """
        places = {name: place for place, name in enumerate(self.names)}
        pending = sorted(names, key=lambda name: (weights.get(name, 0.0), places[name]))
        ordered: list[str] = []
        while pending:
            waiting = frozenset(pending)
            first = next(name for name in pending if not self._below[name] & waiting)
            ordered.append(first)
            pending.remove(first)
        return tuple(ordered)


@lru_cache(maxsize=8)
def needs_of(candidates: tuple[Candidate, ...]) -> Needs:
    """Return what these need, which each step of a search asks for again."""
    return Needs(candidates)


def _followed(name: str, direct: Mapping[str, Sequence[str]]) -> FlipSet:
    found: set[str] = set()
    pending = list(direct[name])
    while pending:
        needed = pending.pop()
        if needed not in direct:
            raise ValueError(f"{name} needs {needed}, which is no unit")
        if needed == name:
            raise ValueError(f"{name} needs itself")
        if needed not in found:
            found.add(needed)
            pending += direct[needed]
    return frozenset(found)
