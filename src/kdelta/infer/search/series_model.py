# SPDX-License-Identifier: GPL-2.0-or-later
"""What a search over the patches of a series is given, what it asks for, and what it answers."""

import enum

import msgspec

from kdelta.infer.effects.estimate import Estimate
from kdelta.infer.search.search_model import InteractionAnswer, Outcome, ProofAnswer, RegionSum

PatchSet = frozenset[str]
"""The names of patches that are applied, in the order of the series, on the tree without any."""


class View(enum.StrEnum):
    """What a patch's effect is measured against."""

    ORDER = "order"
    """The tree with all patches before it: these effects add up to the whole."""
    LEFT_OUT = "left-out"
    """The tree with all patches, less the tree with all but it."""
    ALONE = "alone"
    """The tree with it less the tree without any patch."""


class SeriesStep(enum.StrEnum):
    """What a build is for."""

    PROOF = "proof"
    ORDER = "in order"
    LEFT_OUT = "left out"
    ALONE = "alone"
    PAIR = "pair"
    MINIMAL = "minimal"


class SeriesPatch(msgspec.Struct, frozen=True):
    """A patch of a series.

    needs     earlier patches without which its text does not apply; theirs are among them
    suspects  earlier ones that it may need to build or boot, the likeliest first
    pruned    it was ruled out: searched only if the proof does not hold
    """

    name: str
    needs: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()
    pruned: bool = False


class SeriesObservation(msgspec.Struct, frozen=True):
    """What came of a set of patches; `built` is False where it was known without a build."""

    patches: PatchSet
    outcome: Outcome
    built: bool = True


class SeriesBuild(msgspec.Struct, frozen=True):
    """A kernel to build next, and why, in a line for people."""

    patches: PatchSet
    step: SeriesStep
    reason: str


class SeriesLimits(msgspec.Struct, frozen=True):
    """max_builds: kernels to build besides the two ends; None for as many as it takes. tries: how
    many sets are tried where sets fail, for a patch or a stretch of them.
    """

    max_builds: int | None = None
    tries: int = 4


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
    """What is known of a patch. `effects` by region: what it costs on top of those before it."""

    name: str
    outcome: PatchOutcome
    text: str
    effects: dict[str, Estimate]
    left_out: ViewAnswer | None = None
    alone: ViewAnswer | None = None


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
    proof: ProofAnswer
    builds: int
    notes: tuple[str, ...] = ()
    mean: RegionSum | None = None
