# SPDX-License-Identifier: GPL-2.0-or-later
"""What a search over sets of flipped units is given, what it asks for, and what it answers."""

import enum
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Protocol, Self, TypeVar

import msgspec

from kdelta.counts.model import RegionCounts
from kdelta.infer.effects.estimate import Adds, Estimate, adds
from kdelta.spec.run import RunStatus

FlipSet = frozenset[str]
"""The names of what is flipped: option groups, from A; patches that are applied to the tree, in the
order of the series; the one commit that is built."""

NOTHING: FlipSet = frozenset()

Parts = Mapping[str, Mapping[str, Estimate]]
"""What a kernel executes: region -> function -> own instructions an iteration."""


class Candidate(msgspec.Struct, frozen=True):
    """An option group, or a patch of a series, that may have an effect.

    needs     all that must be flipped before it can be: earlier patches without which its text does
              not apply; theirs are among them
    prior     how likely it is to have an effect in any region, before any build: 0 to 1
    pruned    it was ruled out: searched only if the proof does not hold
    suspects  earlier patches that it may need to build or boot, the likeliest first
    """

    name: str
    needs: tuple[str, ...] = ()
    prior: float = 0.5
    pruned: bool = False
    suspects: tuple[str, ...] = ()


Pair = tuple[FlipSet, FlipSet]
"""Two kernels, of which the second is compared with the first."""


class JudgedPath(msgspec.Struct, frozen=True):
    """What a kernel executes more than another in a region, by as many runs of it as compare makes;
    firm: whether compare calls that a difference. code: if not, by how many instructions functions
    cost more in all runs since their code differs, as of `with_code`.
    """

    effect: Estimate
    firm: bool
    code: dict[str, Fraction] = {}


class Measured(msgspec.Struct, frozen=True, tag=True):
    """A kernel that ran.

    paths   the cost of each region, over its perturbed runs
    parts   that of each function in it, where that is known: they add up to the region's
    runs    the region in each run by the index of its perturbation, where differences are to be
            judged by the rules against chance (chance.py); a region without is judged by its ranges
            alone
    version of the kernel: those of one version are alike, and judged by pairs of runs (pairs.py)
    judged  by the kernel that it was compared with: what compare says, by region
    """

    paths: dict[str, Estimate]
    parts: dict[str, dict[str, Estimate]] = {}
    runs: dict[str, dict[int, RegionCounts]] = {}
    version: str = ""
    judged: dict[FlipSet, dict[str, JudgedPath]] = {}


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
    tries               how many sets are tried for a unit, a patch or a group whose sets fail
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
    BASE = "where a branch begins"
    CONFIRM = "confirming"
    ORDER = "in order"
    LEFT_OUT = "left out"
    WITHOUT_OTHERS = "alone"
    PAIR = "pair"
    MINIMAL = "minimal"


class Observation(msgspec.Struct, frozen=True):
    """What came of a set of flips, and what it had been planned for; None if it was not asked.
    `built` is False where it was known without a build.
    """

    flips: FlipSet
    outcome: Outcome
    step: Step | None = None
    built: bool = True


class PlannedBuild(msgspec.Struct, frozen=True):
    """A kernel to build next, and why, in a line for people. `left`: how many commits are
    searched.
    """

    flips: FlipSet
    step: Step
    reason: str
    left: int = 0


class AnySearch(Protocol):
    """A search of any kind, as its state. Never changed: `observe` gives the next one, and equal
    observations give equal decisions.
    """

    @property
    def doubted(self) -> frozenset[Pair]:
        """Return the kernels that compare is to judge: chance may have made what they differ by, or
        hidden it, and the answer stands on them.
        """

    def observe(self, flips: FlipSet, outcome: Outcome, /) -> Self:
        """Return the search after a kernel, asked for or not."""

    def next_builds(self) -> tuple[PlannedBuild, ...]:
        """Return kernels that are needed, the next one first; empty when finished. Only the first
        is certain: each outcome may change the rest.
        """


S = TypeVar("S", bound=AnySearch)


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
    """Option groups or commits that could not be distinguished, or were not, and what they cost
    together, by region; `text` says why.
    """

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


class Proof(msgspec.Struct, frozen=True):
    """The kernel with every kept unit flipped against B. `differing`: regions whose path is not
    B's, beyond the spread. `held` is None when there was nothing to prove, or no such kernel.
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
    proof: Proof
    builds: int
    strategy: str
    notes: tuple[str, ...] = ()
    mean: RegionSum | None = None


class View(enum.StrEnum):
    """What a patch's effect is measured against."""

    ORDER = "order"
    """The tree with all patches before it: these effects add up to the whole."""
    LEFT_OUT = "left-out"
    """The tree with all patches, less the tree with all but it."""
    ALONE = "alone"
    """The tree with it less the tree without any patch."""


class PatchOutcome(enum.StrEnum):
    """What became of a patch."""

    RULED_OUT = "ruled out"
    """No executed code depends on it."""
    MEASURED = "measured"
    CLEARED = "cleared"
    """It stands in a stretch of patches before and after which the same is executed."""
    TOGETHER = "together"
    """It is one of a group that could not be split."""
    UNRESOLVED = "unresolved"


class ViewAnswer(msgspec.Struct, frozen=True):
    """A patch's effect in a view, by region; empty where it could not be had, and `text` says why.
    `others`: the patches that had to come or go with it.
    """

    effects: dict[str, Estimate]
    others: tuple[str, ...] = ()
    text: str = ""


class PatchAnswer(msgspec.Struct, frozen=True):
    """What is known of a patch. By region, `effects`: what it costs on top of those before it;
    code: see `JudgedPath`.
    """

    name: str
    outcome: PatchOutcome
    text: str
    effects: dict[str, Estimate]
    left_out: ViewAnswer | None = None
    alone: ViewAnswer | None = None
    code: dict[str, dict[str, Fraction]] = {}


class PatchGroup(msgspec.Struct, frozen=True):
    """Patches that were not split, what they cost together, and why."""

    patches: tuple[str, ...]
    effects: dict[str, Estimate]
    reason: str
    left_out: ViewAnswer | None = None
    alone: ViewAnswer | None = None


class PatchNeed(msgspec.Struct, frozen=True):
    """A patch that cannot be had without others, and what happens without them."""

    patch: str
    needs: tuple[str, ...]
    reason: str


class SeriesAnswer(msgspec.Struct, frozen=True):
    """All that was found. Patches come in order; `builds` counts kernels other than the two ends;
    `notes` are sentences on what was assumed and what stays open. `mean`: the account of the mean
    over regions, in per cent of the tree without patches, where it is known by runs; effects then
    have their mean as `MEAN`, too.
    """

    patches: tuple[PatchAnswer, ...]
    groups: tuple[PatchGroup, ...]
    needs: tuple[PatchNeed, ...]
    interactions: tuple[InteractionAnswer, ...]
    sums: dict[str, RegionSum]
    proof: Proof
    builds: int
    notes: tuple[str, ...] = ()
    mean: RegionSum | None = None


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
    max_builds  kernels besides the two ends; None for as many as it takes
    tries       how many commits are tried where they fail that hold the same candidates
    """

    first: bool = False
    regions: frozenset[str] | None = None
    margin: Fraction = Fraction(1, 1000)
    margins: Mapping[str, Fraction] = {}
    max_builds: int | None = None
    tries: int = 2

    def margin_of(self, region: str) -> Fraction:
        """What counts in that region."""
        return max(self.margin, self.margins.get(region, self.margin))


class Culprit(msgspec.Struct, frozen=True):
    """A commit that has an effect. By region, and by region and function where the effect is more
    than its spread. `confirmed`: against its own parent. `moved`: only between functions, so that
    no region has an effect. `between`: the two commits whose kernels differ by the effect; None
    where it takes more of them.
    """

    commit: str
    effects: dict[str, Estimate]
    functions: dict[str, dict[str, Estimate]]
    confirmed: bool
    moved: bool
    text: str
    between: tuple[str, str] | None = None


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
    groups: tuple[GroupAnswer, ...]
    placed: tuple[PlacedCommits, ...]
    sums: dict[str, RegionSum]
    candidates: int
    builds: int
    failed: dict[str, str]
    notes: tuple[str, ...] = ()
