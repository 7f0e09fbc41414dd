# SPDX-License-Identifier: GPL-2.0-or-later
"""What a search over the commits of a history is given, what it asks for, and what it answers."""

import enum
from collections.abc import Callable, Mapping
from fractions import Fraction

import msgspec

from kdelta.infer.effects.estimate import Estimate
from kdelta.infer.search.search_model import Outcome, RegionSum

Parents = Mapping[str, tuple[str, ...]]
"""Commits and their parents, each commit after its parents: the range that is searched, and below
it what its branches begin at, as far as that is older than the good end."""

Alike = Callable[[str, str], bool]
"""Whether the kernels of two measured commits hold nothing different that anybody executed: what
they differ by is then placement."""


class Clues(msgspec.Struct, frozen=True):
    """Which commits touch what (objects, by path), and where functions are at home. Only decides
    what is tried first.
    """

    touches: Mapping[str, frozenset[str]] = {}
    homes: Mapping[str, frozenset[str]] = {}


class History(msgspec.Struct, frozen=True):
    """The commits between a good and a bad end, both of them among `parents`, and which of them
    were ruled out: these are searched only if what was measured speaks against it.
    """

    parents: Parents
    good: str
    bad: str
    ruled_out: frozenset[str] = frozenset()
    clues: Clues = Clues()


class Wants(msgspec.Struct, frozen=True):
    """What is searched for, and when to stop.

    first       only the commit with the largest effect
    regions     only effects on these; None for all
    margin      the part of a region's cost in the good end that an effect must exceed
    margins     the same for some regions, where it is larger than for others
    confirm     measure a commit that was found, and its parent, where others were till then
    max_builds  kernels besides the two ends; None for as many as it takes
    tries       how many commits are tried where they fail that hold the same candidates
    """

    first: bool = False
    regions: frozenset[str] | None = None
    margin: Fraction = Fraction(1, 1000)
    margins: Mapping[str, Fraction] = {}
    confirm: bool = True
    max_builds: int | None = None
    tries: int = 2

    def margin_of(self, region: str) -> Fraction:
        """What counts in that region."""
        return max(self.margin, self.margins.get(region, self.margin))


class BisectStep(enum.StrEnum):
    """What a build is for."""

    HALF = "halving"
    BASE = "where a branch begins"
    CONFIRM = "confirming"


class Seen(msgspec.Struct, frozen=True):
    """What came of a commit, and what it had been planned for; None for the ends."""

    commit: str
    outcome: Outcome
    step: BisectStep | None = None


class PlannedCommit(msgspec.Struct, frozen=True):
    """A commit to build next, and why, in a line for people. `left`: how many are searched."""

    commit: str
    step: BisectStep
    reason: str
    left: int


class Culprit(msgspec.Struct, frozen=True):
    """A commit that has an effect. By region, and by region and function where the effect is more
    than its spread. `confirmed`: against its own parent. `moved`: only between functions, so that
    no region has an effect.
    """

    commit: str
    effects: dict[str, Estimate]
    functions: dict[str, dict[str, Estimate]]
    confirmed: bool
    moved: bool
    text: str


class Together(msgspec.Struct, frozen=True):
    """Commits with an effect that could not be distinguished, or were not; `text` says why."""

    commits: tuple[str, ...]
    effects: dict[str, Estimate]
    text: str


class PlacedCommits(msgspec.Struct, frozen=True):
    """Commits between two that were measured: the paths differ, and nothing that was executed."""

    below: str
    above: str
    commits: tuple[str, ...]
    effects: dict[str, Estimate]


class BisectAnswer(msgspec.Struct, frozen=True):
    """All that was found, the largest effect first. `builds` counts kernels besides the two ends,
    `candidates` the commits that were searched. `sums`: what of the difference between the ends
    the culprits and groups explain. `notes` are sentences on what was assumed and what stays open.
    """

    culprits: tuple[Culprit, ...]
    groups: tuple[Together, ...]
    placed: tuple[PlacedCommits, ...]
    sums: dict[str, RegionSum]
    candidates: int
    builds: int
    failed: dict[str, str]
    notes: tuple[str, ...] = ()
