# SPDX-License-Identifier: GPL-2.0-or-later
"""What is compared of one operation: its costs on both sides, each an iteration."""

from collections.abc import Callable, Sequence
from fractions import Fraction

import msgspec

from kdelta.counts.model import Cost, RegionCounts
from kdelta.infer.effects.deferred import leaves_work
from kdelta.infer.effects.estimate import Quantity
from kdelta.infer.effects.pairs import Scales

RegionRuns = Sequence[RegionCounts]
"""One region in each run of one kernel that has it."""

Sides = tuple[RegionRuns, RegionRuns]


class Costs(msgspec.Struct, frozen=True):
    """What is compared of a region's own work, and of others' meanwhile, each an iteration.

    left: what is left to interrupts and other tasks (see `LeftWork`); None where nothing is on
    either side, or it was not counted on one
    """

    insns: Quantity
    median_insns: Quantity
    kernel_insns: Quantity
    user_insns: Quantity
    string_iterations: Quantity
    string_bytes: Quantity
    loads: Quantity
    stores: Quantity
    specials: dict[str, Quantity]
    interrupts: Quantity
    background: Quantity
    left: Quantity | None = None

    @property
    def others(self) -> Quantity:
        """What is left to others where that is known, else what other tasks do meanwhile."""
        return self.left or self.background


def costs_of(sides: Sides, scales: Scales) -> Costs:
    """Return an operation's costs; scales: of an iteration."""
    own = [[region.cost("own") for region in side] for side in sides]

    def of(figure: Callable[[Cost], int]) -> Quantity:
        return scales.quantity(*([figure(cost) for cost in costs] for costs in own))

    def of_regions(figure: Callable[[RegionCounts], int]) -> Quantity:
        return scales.quantity(*([figure(region) for region in side] for side in sides))

    def of_special(kind: str) -> Quantity:
        return of(lambda cost: cost.specials.get(kind, 0))

    left = [[left_insns(region) for region in side] for side in sides]
    medians = [[region.median_own_insns() for region in side] for side in sides]
    return Costs(
        insns=of(lambda cost: cost.insns),
        median_insns=scales.of(medians[0], medians[1]),
        kernel_insns=of_regions(lambda region: region.cost("own", kernel=True).insns),
        user_insns=of_regions(lambda region: region.cost("own", kernel=False).insns),
        string_iterations=of(lambda cost: cost.string_iterations),
        string_bytes=of(lambda cost: cost.string_bytes),
        loads=of(lambda cost: cost.loads),
        stores=of(lambda cost: cost.stores),
        specials={
            kind: of_special(kind)
            for kind in sorted({kind for costs in own for cost in costs for kind in cost.specials})
        },
        interrupts=of_regions(lambda region: region.cost("interrupts").insns),
        background=of_regions(lambda region: region.cost("other").insns),
        left=scales.of(left[0], left[1]) if _is_left(sides) else None,
    )


def _is_left(sides: Sides) -> bool:
    """Whether anything is left to others, and how much is known of each run that may leave it."""
    regions = [one for side in sides for one in side]
    known = all(one.left or not leaves_work(one) for one in regions)
    return known and any(one.left for one in regions)


def left_insns(region: RegionCounts) -> Fraction:
    """Return instructions an iteration that are left to others; 0 where nothing is."""
    return region.left.mean_insns if region.left else Fraction(0)


def with_other_tasks(sides: Sides, scales: Scales) -> Quantity:
    """Return instructions an iteration of the measured tasks, with what these leave to others where
    that is known, else with what other tasks do meanwhile.
    """
    if _is_left(sides):
        means = [[one.mean_own_insns() + left_insns(one) for one in side] for side in sides]
        return scales.of(means[0], means[1])
    return scales.quantity(
        *([sum(one.cost(who).insns for who in ("own", "other")) for one in side] for side in sides)
    )
