# SPDX-License-Identifier: GPL-2.0-or-later
"""What a search over sets of flipped units is given, what it asks for, and what it answers; and
which sets can be flipped: closed under needs, and in orders that stay closed.
"""

import enum
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction

import msgspec

from kdelta.counts.model import RegionCounts
from kdelta.infer.effects.estimate import Adds, Estimate, adds
from kdelta.spec.run import RunStatus

FlipSet = frozenset[str]
"""The names of the units that are flipped, from A: closed under their needs."""

NOTHING: FlipSet = frozenset()

Parts = Mapping[str, Mapping[str, Estimate]]
"""What a kernel executes: region -> function -> own instructions an iteration."""


class SearchUnit(msgspec.Struct, frozen=True):
    """A unit: `needs` names all units that must be flipped before it can be.

    prior    how likely it is to have an effect in any region, before any build: 0 to 1
    pruned   it was ruled out: searched only if the proof does not hold
    """

    name: str
    needs: tuple[str, ...] = ()
    prior: float = 0.5
    pruned: bool = False


class Measured(msgspec.Struct, frozen=True, tag=True):
    """A kernel that ran.

    paths   the cost of each region, over its perturbed runs
    parts   that of each function in it, where that is known: they add up to the region's
    runs    the region in each run, where differences are to be judged by the rules against chance
            (chance.py); a region without is judged by its ranges alone
    """

    paths: dict[str, Estimate]
    parts: dict[str, dict[str, Estimate]] = {}
    runs: dict[str, tuple[RegionCounts, ...]] = {}


class Failed(msgspec.Struct, frozen=True, tag=True):
    """A kernel that was refused, or failed to build, to boot or to run. `detail` is for people."""

    status: RunStatus
    detail: str = ""


Outcome = Measured | Failed


class Limits(msgspec.Struct, frozen=True):
    """When to stop.

    max_builds          kernels to build, the proof among them; None for as many as it takes
    interaction_builds  of those, kernels built only to find which units interact; None for what
                        two pairs take
    relevance           the part of a region's cost in A that a remainder must exceed for the units
                        behind it to be looked for; what is less is still said
    tries               how many sets are tried for a unit or a group whose sets fail
    coded_from          how many units it takes to search by code: with fewer, single kernels are
                        not many, and leave nothing to be distinguished
    """

    max_builds: int | None = None
    interaction_builds: int | None = None
    relevance: Fraction = Fraction(1, 1000)
    tries: int = 3
    coded_from: int = 25


def builds_left(max_builds: int | None, spent: int) -> int | None:
    """How many kernels may still be built; None for as many as it takes."""
    return None if max_builds is None else max(0, max_builds - spent)


class Step(enum.StrEnum):
    """What a build is for."""

    PROOF = "proof"
    ALONE = "one at a time"
    HALVING = "halving"
    CODED = "by code"
    SETTLE = "settling"
    DETOUR = "around a failure"
    CHECK = "check"
    INTERACTION = "interaction"


class Observation(msgspec.Struct, frozen=True):
    """What came of a set of flips, and what it had been planned for; None if it was not asked."""

    flips: FlipSet
    outcome: Outcome
    step: Step | None = None


class PlannedBuild(msgspec.Struct, frozen=True):
    """A kernel to build next, and why, in a line for people."""

    flips: FlipSet
    step: Step
    reason: str


class How(enum.StrEnum):
    """How a unit's effect is known."""

    ALONE = "alone"
    """A with it (and its needs) against A (with its needs)."""
    DIFFERENCE = "difference"
    """Two kernels that differ by it alone, other units flipped in both."""
    CLEARED = "cleared"
    """Two kernels that differ by it and others have the same cost in every region."""
    DECODED = "decoded"
    """From kernels with many units flipped each, function by function."""
    INFERRED = "inferred"
    """By subtraction from more than two kernels, as if effects add up."""
    RULED_OUT = "ruled out"
    """It was pruned, and the proof held."""
    UNRESOLVED = "unresolved"


class UnitAnswer(msgspec.Struct, frozen=True):
    """What is known of a unit. `effects` by region: what flipping it costs; empty if unresolved or
    ruled out, and for a cleared one zero within the interval of its group. `text` says how it is
    known, or why not.
    """

    name: str
    how: How
    text: str
    effects: dict[str, Estimate]


class GroupAnswer(msgspec.Struct, frozen=True):
    """Units that could not be distinguished, and what they cost together, by region."""

    units: tuple[str, ...]
    effects: dict[str, Estimate]
    text: str


class InteractionAnswer(GroupAnswer, frozen=True):
    """Units that together cost more or less than the sum of each: what is left over, by region."""


class RegionSum(msgspec.Struct, frozen=True):
    """A region's account: `whole` is B less A; `explained` adds up units, groups and interactions;
    `remainder` is whole less explained, with its own interval (kernels that stand on both sides
    cancel). `base` is the cost in A, and `widest` that in the kernel whose runs vary most.
    """

    whole: Estimate
    explained: Estimate
    remainder: Estimate
    base: Estimate
    widest: Estimate

    @property
    def adds(self) -> Adds:
        """Whether the parts add up to the whole."""
        return adds(self.remainder, self.base)


class ProofAnswer(msgspec.Struct, frozen=True):
    """The kernel with all units flipped that were not ruled out, against B. `held` is None if
    nothing was ruled out, or the kernel is not there; `differing` are the regions that part.
    """

    held: bool | None
    text: str
    differing: dict[str, Estimate] = {}


class SearchAnswer(msgspec.Struct, frozen=True):
    """All that the search found. Units come in the order they were given. `builds` counts kernels
    other than A and B; `notes` are sentences on what was assumed and what stays open. `mean`: the
    account of the mean over regions, in per cent of A, where it is known by runs; effects then have
    their mean as `MEAN`, too.
    """

    units: tuple[UnitAnswer, ...]
    groups: tuple[GroupAnswer, ...]
    interactions: tuple[InteractionAnswer, ...]
    sums: dict[str, RegionSum]
    proof: ProofAnswer
    builds: int
    strategy: str
    notes: tuple[str, ...] = ()
    mean: RegionSum | None = None


class Needs:
    """What units need, followed to the end. Raises ValueError for needs that name no unit, or go
    in a circle.
    """

    def __init__(self, units: Sequence[SearchUnit]) -> None:
        self.names = tuple(unit.name for unit in units)
        if len(set(self.names)) < len(self.names):
            raise ValueError("two units have the same name")
        direct = {unit.name: unit.needs for unit in units}
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
