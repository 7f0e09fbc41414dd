# SPDX-License-Identifier: GPL-2.0-or-later
"""What is known about a change's effect on model cycles, and the verdict on it."""

import enum

import msgspec

from kdelta.infer.cycles.ensembles import Interval, RegionCost
from kdelta.infer.effects.effects import Word

DEFAULT_MARGIN = 0.01


class CodeChange(enum.StrEnum):
    """How the code that a region executes differs between two kernels.

    RELINKED   it does not: the same objects, linked in another order or with other alignment
    SAME       it does not, though what is not executed here may
    DIFFERENT  it does, or it was not compared
    """

    RELINKED = "relinked"
    SAME = "same"
    DIFFERENT = "different"


class ComparedRegion(msgspec.Struct, frozen=True, eq=False):
    """One region in two kernels."""

    name: str
    base: RegionCost
    other: RegionCost
    code: CodeChange = CodeChange.DIFFERENT


class CycleVerdict(msgspec.Struct, frozen=True):
    """What is known about a region's model cycles.

    faster, slower   by more than the margin, whatever the prices are in their intervals
    same             both kernels cost the same within the margin: the whole interval of the effect
                     is inside. `within` is the margin, as a fraction, or 0: exactly the same
    placement only   the same code, or a path effect of zero and the same cost over all layouts
                     within the margin; but the two layouts that were linked differ by more than it
    not slower       in what is counted: none of these, but nothing that is counted grows, so the
                     other kernel is not slower at any prices. Never "faster" by that alone: what is
                     not counted may grow
    not comparable   a path that one of the kernels has not as it would on the CPU decides
    unresolved       none of these; `layouts` in each ensemble would probably settle it (with a
                     chance of 80 % if the effect is as estimated), or None where no number would.
                     `reason` says what it depends on

    With the other words, `reason` may say what is peculiar about them.
    """

    word: Word
    within: float | None = None
    layouts: int | None = None
    reason: str = ""

    @property
    def text(self) -> str:
        """Return what the verdict depends on, and what would settle it."""
        hint = "" if self.layouts is None else f"; --layouts {self.layouts} would probably do"
        return self.reason + hint


class Bounds(msgspec.Struct, frozen=True):
    """A figure with its confidence interval [low, high]."""

    value: float
    low: float
    high: float


class Draws(msgspec.Struct, frozen=True):
    """An ensemble, and where the layout as linked stands in it: `percentile` of the layouts cost
    less (of those that cost the same, half), from 0 to 100; None without layouts. `draws`: the
    figure in each layout, of model cycles with misses exposed and of misses; empty where none
    differs from another.
    """

    mean: float
    least: float
    median: float
    most: float
    as_linked: float
    percentile: float | None
    draws: tuple[float, ...] = ()


class ComparedEnsembles(msgspec.Struct, frozen=True):
    """A figure over both ensembles, an iteration, and the effect: other's mean less base's."""

    base: Draws
    other: Draws
    effect: Bounds


class AsLinked(msgspec.Struct, frozen=True):
    """How the two layouts as linked differ, other less base, over all prices.

    cycles     model cycles an iteration
    relative   as a fraction of the base's
    placement  that part of the cycles that is only where the two layouts lie in their ensembles;
               with the confidence interval of the ensembles' means. What is left is the effect
    """

    cycles: Interval
    relative: Interval
    placement: Interval


class PlacementEffect(msgspec.Struct, frozen=True):
    """The effect of a change on a region's model cycles: the difference of the ensembles' means.

    layouts          how many the base's and the other's ensemble have
    paired           whether both were drawn alike, and so compared layout by layout
    margin           as a fraction
    confidence       of all intervals here; more than 0.95 when many regions are judged at once
    without_measured_cost  kinds of misses whose prices were never measured on such a CPU: these are
                     taken from zero
    misses           by kind: exact for each layout
    hidden, exposed  model cycles with all misses' prices at their low, and at their high end. Means
                     and draws are at the middle of the other prices, the effect's interval is over
                     all of these
    cycles           interval of the effect over all prices, model cycles an iteration: the one that
                     the word rests on. Without end where one run on a side has no spread
    relative         the same as a fraction of the base's mean
    data             by kind, what accesses to data miss, which no layout of code changes
    data_cycles      what of the effect is due to that, over its prices: a part of the path's cost
    unpriced         special instructions without a price whose number changes: not in the cycles
    relinked         both kernels execute the same code here, only linked again
    lru              the verdict if all caches evicted what was least recently used; None where they
                     do, or where that was not asked
    """

    region: str
    verdict: CycleVerdict
    layouts: tuple[int, int]
    paired: bool
    margin: float
    confidence: float
    without_measured_cost: tuple[str, ...]
    misses: dict[str, ComparedEnsembles]
    hidden: ComparedEnsembles
    exposed: ComparedEnsembles
    cycles: Interval
    relative: Interval
    as_linked: AsLinked
    lru: CycleVerdict | None = None
    data: dict[str, ComparedEnsembles] = {}
    data_cycles: Interval | None = None
    unpriced: dict[str, ComparedEnsembles] = {}
    relinked: bool = False

    @property
    def within_bound(self) -> bool:
        """Whether the upper end of the interval is within the margin: by more it is not slower."""
        return self.relative.high <= self.margin

    @property
    def grows_unpriced(self) -> tuple[str, ...]:
        """The special instructions without a price that the other kernel has more of."""
        return tuple(name for name, one in self.unpriced.items() if one.effect.value > 0)
