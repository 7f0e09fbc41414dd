# SPDX-License-Identifier: GPL-2.0-or-later
"""What measures found between two kernels, as reports have it."""

from collections.abc import Collection, Iterable

import msgspec
from msgspec import UNSET, UnsetType

from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.cycles.placement_model import PlacementEffect
from kdelta.infer.effects.effects import Word
from kdelta.infer.effects.gate import Judged

MODEL_CYCLES = "model cycles"
"""The name of the measure whose effects have a placement as their detail."""

_PASSING = frozenset({Word.FASTER, Word.SAME, Word.NOT_SLOWER, Word.UNRESOLVED})
"""Words by which, or by whose interval, a gate passes: what has no price is in none of them."""


class Effect(msgspec.Struct, frozen=True):
    """What a change does to one region, by one measure.

    base, other  the figures, in the measure's unit; None where they are not known
    change       other less base, as a fraction of the base; None where that is not known, or says
                 nothing
    reason       why the word is open, or what is peculiar about it
    doubt        what may make the other kernel slower, whatever the word is; empty for nothing
    bounded      whether the upper end of the change is within the margin
    as_linked    the change between the two builds with the layouts that they were linked with, as a
                 fraction of the base, where the verdict is on all layouts
    detail       what its measure knows besides
    """

    region: str
    word: Word
    base: Interval | None = None
    other: Interval | None = None
    change: Interval | None = None
    reason: str = ""
    doubt: str = ""
    bounded: bool = False
    as_linked: Interval | None = None
    detail: PlacementEffect | UnsetType = UNSET

    @property
    def placement(self) -> PlacementEffect | None:
        """Return the detail, of an effect on model cycles."""
        return self.detail or None

    def renamed(self, region: str) -> "Effect":
        """Return the same of a region that is called otherwise."""
        detail = self.detail and msgspec.structs.replace(self.detail, region=region)
        return msgspec.structs.replace(self, region=region, detail=detail)


class OtherFigure(msgspec.Struct, frozen=True):
    """What a region costs in another unit than the measure's, in two kernels."""

    region: str
    unit: str
    base: float
    other: float


class MeasuredEffects(msgspec.Struct, frozen=True):
    """What a measure found between two kernels.

    measure  its name
    unit     of its figures, a plural
    where    what follows the name of a region, where only that tells it from the path's
    notes    what is to be known about regions
    weighs   whether it decides what the path leaves open between more of one and less of another
    left_out regions that were not measured, since nothing is to be expected of them
    others   figures in other units
    """

    measure: str
    unit: str
    effects: tuple[Effect, ...]
    where: str = ""
    notes: tuple[str, ...] = ()
    weighs: bool = True
    left_out: tuple[str, ...] = ()
    others: tuple[OtherFigure, ...] = ()

    @property
    def placements(self) -> dict[str, PlacementEffect]:
        """Return the details of effects on model cycles, by region."""
        return {one.region: found for one in self.effects if (found := one.placement)}

    def without(self, names: Collection[str]) -> "MeasuredEffects":
        """Return the same without regions of these names."""
        kept = tuple(one for one in self.effects if one.region not in names)
        others = tuple(one for one in self.others if one.region not in names)
        return msgspec.structs.replace(self, effects=kept, others=others)


def of_placement(one: PlacementEffect, cpu: str) -> Effect:
    """Return an effect on model cycles on that CPU."""
    verdict = one.verdict
    grows = ", ".join(one.grows_unpriced) if verdict.word in _PASSING else ""
    return Effect(
        region=one.region,
        word=verdict.word,
        base=Interval(one.hidden.base.mean, one.exposed.base.mean),
        other=Interval(one.hidden.other.mean, one.exposed.other.mean),
        change=one.relative,
        reason=verdict.text,
        doubt=f"{grows}: more of it, at no known cost on {cpu}" if grows else "",
        bounded=one.within_bound,
        as_linked=one.as_linked.relative,
        detail=one,
    )


def placements_in(measured: Iterable[MeasuredEffects]) -> dict[str, PlacementEffect]:
    """Return the effects on model cycles by region, of what all measures found."""
    return next((one.placements for one in measured if one.measure == MODEL_CYCLES), {})


def judge_effect(effect: Effect, found: MeasuredEffects) -> Judged:
    """Return a verdict of a measure as a gate sees it."""
    name = effect.region + found.where
    if effect.word is Word.SLOWER and effect.change:
        low, high = (f"{100 * end:+.3g}%" for end in (effect.change.low, effect.change.high))
        return Judged(f"{name} {low} to {high} {found.unit}", Word.SLOWER, name=name)
    if effect.word is Word.SLOWER and effect.base and effect.other:  # a change without a size
        low, high = (f"{one.low:.3g}" for one in (effect.base, effect.other))
        why = f" ({effect.reason})" if effect.reason else ""
        return Judged(f"{name} {low} to {high} {found.unit}{why}", Word.SLOWER, name=name)
    if effect.doubt:
        return Judged(name, Word.UNRESOLVED, effect.doubt)
    return Judged(name, effect.word, effect.reason, bounded=effect.bounded)
