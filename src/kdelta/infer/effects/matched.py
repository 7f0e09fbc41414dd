# SPDX-License-Identifier: GPL-2.0-or-later
"""The runs of one region in two kernels, matched: those of equal perturbation and as many
iterations are pairs, wherever they stand among the runs that went well.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import TypeVar

import msgspec

from kdelta.counts.model import RegionCounts
from kdelta.infer.effects.costs import Sides
from kdelta.infer.effects.estimate import MANY_PAIRS
from kdelta.infer.effects.pairs import (
    FEWEST_TO_SAY,
    NOT_SHAKEN,
    RunPairs,
    kept_pairs,
    pairs_of_runs,
    shaken,
)

Index = int | msgspec.UnsetType
"""The index of a run's perturbation, where it is known."""

_T = TypeVar("_T")


class MatchedRuns(msgspec.Struct, frozen=True):
    """Both sides' runs, those without a pair left out where kernels are alike.

    pairs     None where runs are compared side by side
    left_out  what is to be known of the runs that were left out
    too_few   kernels are alike, and have less than two pairs of several runs
    """

    sides: Sides
    pairs: RunPairs | None = None
    left_out: tuple[str, ...] = ()
    too_few: bool = False


def matched_runs(
    base: Sequence[tuple[Index, RegionCounts]],
    other: Sequence[tuple[Index, RegionCounts]],
    *,
    alike: bool,
) -> MatchedRuns:
    """Return a region's runs in two kernels as they are to be compared.

    alike: the kernels are, so that their pairs share most of the state. The pair that is not shaken
    counts if it shows what the others do.
    """
    sides = tuple(one for _, one in base), tuple(one for _, one in other)
    ours, theirs = _by_index(base), _by_index(other)
    if len(ours) != len(base) or len(theirs) != len(other):
        return MatchedRuns(sides)
    both = [index for index in ours if index in theirs]
    equal = [one for one in both if ours[one].iteration_count == theirs[one].iteration_count]
    if not alike:
        return MatchedRuns(sides, apart_pairs(list(ours), list(theirs), equal))
    if len(equal) < FEWEST_TO_SAY:
        too_few = len(both) < FEWEST_TO_SAY <= min(len(ours), len(theirs))
        return MatchedRuns(sides, too_few=too_few)
    found = {one: theirs[one].mean_own_insns() - ours[one].mean_own_insns() for one in equal}
    kept = kept_pairs(found)
    return MatchedRuns(
        (tuple(ours[one] for one in kept), tuple(theirs[one] for one in kept)),
        pairs_of_runs(kept, kept, kept, alike=True),
        tuple(_left_out(ours, theirs)),
    )


def matched_sides(
    base: Sequence[tuple[Index, _T]], other: Sequence[tuple[Index, _T]], *, alike: bool
) -> tuple[Sequence[_T], Sequence[_T], RunPairs | None]:
    """Return what whole runs have, matched as a region's runs are, whatever it is."""
    ours, theirs = _by_index(base), _by_index(other)
    both = [index for index in ours if index in theirs]
    known = len(ours) == len(base) and len(theirs) == len(other)
    kept = shaken(both)
    if known and alike and len(kept) >= FEWEST_TO_SAY:
        pairs = pairs_of_runs(kept, kept, kept, alike=True)
        return [ours[one] for one in kept], [theirs[one] for one in kept], pairs
    rows = [one for _, one in base], [one for _, one in other]
    return *rows, apart_pairs(list(ours), list(theirs), both) if known and not alike else None


def apart_pairs(base: Sequence[int], other: Sequence[int], among: Sequence[int]) -> RunPairs | None:
    """Return the pairs of kernels that are not alike; None where they are too few to be narrower.
    among: the perturbations that may be pairs.
    """
    found = [index for index in among if index != NOT_SHAKEN]
    return pairs_of_runs(base, other, found, alike=False) if len(found) >= MANY_PAIRS else None


def _by_index(side: Sequence[tuple[Index, _T]]) -> dict[int, _T]:
    """Return runs by the index of their perturbation, those of which it is known."""
    return {index: one for index, one in side if index is not msgspec.UNSET}


def _left_out(base: Collection[int], other: Collection[int]) -> Iterator[str]:
    """Yield for each side which runs it alone has."""
    for name, mine, its in (("base", base, other), ("other", other, base)):
        if alone := [f"#{index}" for index in mine if index not in its]:
            yield f"left out, since {name} alone has them: runs {', '.join(alone)}"
