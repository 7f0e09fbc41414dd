# SPDX-License-Identifier: GPL-2.0-or-later
"""Which units of a set do together what none of them does alone.

A set whose cost is more than A's and its units' effects holds a smallest part of which that is
true. Its units are found one after the other, by the first so many of the set in order, parted
where the suspects are; for a pair among n units that takes about 2 log2(n) kernels, one more than
there are bits in the number of pairs.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from kdelta.infer.effects.estimate import Estimate
from kdelta.infer.search.additive import Combination
from kdelta.infer.search.closed_sets import Needs
from kdelta.infer.search.evidence import Account
from kdelta.infer.search.search_model import FlipSet

Test = Callable[[FlipSet], bool | None]
"""Whether a set costs more or less than is explained; None if it was not measured."""


class Question(msgspec.Struct, frozen=True, tag=True):
    """A kernel that has to be built to go on. `known` are the units found so far."""

    flips: FlipSet
    known: tuple[str, ...]


class Culprits(msgspec.Struct, frozen=True, tag=True):
    """A smallest set that is not explained by its parts."""

    units: FlipSet


class Lost(msgspec.Struct, frozen=True, tag=True):
    """The kernels that would decide it did not come to be."""

    units: tuple[str, ...]


def smallest(
    order: Sequence[str],
    weights: Mapping[str, float],
    needs: Needs,
    test: Test,
    failed: Collection[FlipSet],
) -> Question | Culprits | Lost:
    """The smallest part of a set that is not explained, or the kernel to build to find it.

    order    the whole set, of which `test` is true, each unit after those that it needs
    weights  how likely each is to be of that part, to any scale
    """
    found: list[str] = []
    left = list(order)
    while True:
        core = needs.closure(found)
        if found:
            verdict = test(core)
            if verdict:
                return Culprits(core if len(found) == 1 else frozenset(found))
            if verdict is None and core not in failed:
                return Question(core, tuple(found))
            # With more units on top it would be told no longer whether these alone do it.
            if not left or (verdict is None and len(found) > 1):
                return Lost(tuple(found))
        sets = [core | needs.closure(left[:place]) for place in range(len(left) + 1)]
        verdicts = [test(flips) for flips in sets]
        high = next((place for place in range(1, len(sets)) if verdicts[place]), len(left))
        low = max((place for place in range(high) if verdicts[place] is False), default=0)
        between = [place for place in range(low + 1, high) if sets[place] not in failed]
        if between:
            return Question(sets[_middle(between, low, high, left, weights)], tuple(found))
        if high - low > 1:
            return Lost((*found, *left[low:high]))
        found.append(left[high - 1])
        left = left[: high - 1]


def _middle(
    places: Sequence[int], low: int, high: int, left: Sequence[str], weights: Mapping[str, float]
) -> int:
    total = sum(weights[name] for name in left[low:high])
    return min(
        places, key=lambda place: abs(total - 2 * sum(weights[name] for name in left[low:place]))
    )


def suspicion(account: Account, flips: FlipSet, residual: Combination) -> dict[str, float]:
    """How likely each unit is to be of the part of a set that is not explained.

    A unit whose effect others take away, or double, leaves just that effect over; and those that
    do something where something is left over are likelier than others.
    """
    left = account.kernels.estimates(residual)
    moved = {name for name, one in left.items() if not one.low <= 0 <= one.high}
    weights = {}
    for name in flips:
        evidence = account.evidence.get(name)
        effects = account.kernels.estimates(evidence.effect) if evidence else {}
        active = {r for r, one in effects.items() if not one.low <= 0 <= one.high}
        weights[name] = 1.0
        if active & moved:
            weights[name] = 3.0
            alike = [_alike(effects[r], left[r]) for r in moved if r in effects]
            if active == moved and all(alike):
                weights[name] = 30.0
    return weights


def _alike(effect: Estimate, left: Estimate) -> bool:
    """Whether what is left over is the effect once more, or what takes it away."""
    reach = effect.half_width + left.half_width
    return abs(abs(effect.value) - abs(left.value)) <= reach
