# SPDX-License-Identifier: GPL-2.0-or-later
"""One unit at a time: for each a pair of kernels that differ by nothing else, a build a unit.

Most are flipped alone in A. What needs one unit that itself is flipped alone goes on top of that.
What needs several would take two builds from A; it is taken out of the kernel with everything
flipped instead, and those that depend on it before it.
"""

from collections.abc import Collection, Sequence

from kdelta.infer.search.additive import ObservedKernels
from kdelta.infer.search.closed_sets import Needs
from kdelta.infer.search.search_model import FlipSet

Pair = tuple[FlipSet, FlipSet]
"""The kernel with a unit, and the one without it."""


def pairs_for(
    needs: Needs, kernels: ObservedKernels, top: FlipSet, units: Sequence[str], tries: int
) -> dict[str, Pair]:
    """For each unit the pair to complete; without those for which `tries` kernels failed.

    units   those to decide, in an order in which each comes after its needs
    top     a measured kernel with all of them flipped
    """
    found: dict[str, Pair] = {}
    planned: set[FlipSet] = set(kernels.measured)
    shrunk = top
    for name in units:
        below = needs.below(name)
        pair = below | {name}, below
        if below in planned and pair[0] not in kernels.failed:
            found[name] = pair
            planned.add(pair[0])
    for name in reversed([name for name in units if name not in found]):
        pair = shrunk, shrunk - {name}
        if _possible(needs, kernels, pair, name) and pair[1] not in kernels.failed:
            found[name] = pair
            shrunk = pair[1]
        elif other := _around(needs, kernels, name, tries):
            found[name] = other
    return found


def _possible(needs: Needs, kernels: ObservedKernels, pair: Pair, name: str) -> bool:
    more, below = pair
    return name in more and needs.is_closed(below) and not set(pair) & set(kernels.failed)


def _around(needs: Needs, kernels: ObservedKernels, name: str, tries: int) -> Pair | None:
    """The pair nearest to A of which one kernel is there; else the unit on top of its needs."""
    failures = sum(_besides(needs, kernels, flips, name) for flips in kernels.failed)
    if failures >= tries:
        return None
    found: list[Pair] = []
    for flips in kernels.measured:
        pair = (flips, flips - {name}) if name in flips else (flips | {name}, flips)
        if needs.is_closed(pair[0]) and _possible(needs, kernels, pair, name):
            found.append(pair)
    if found:
        return min(found, key=lambda pair: (len(pair[1]), sorted(pair[1])))
    below = needs.below(name)
    pair = below | {name}, below
    return None if set(pair) & set(kernels.failed) else pair


def _besides(needs: Needs, kernels: ObservedKernels, failed: FlipSet, name: str) -> bool:
    """Whether a failed kernel was the other side of a measured one, or the unit's first choice."""
    return failed ^ {name} in kernels or failed == needs.below(name) | {name}


def missing(pair: Pair, known: Collection[FlipSet]) -> list[FlipSet]:
    """Which kernels of a pair are to be built."""
    return [flips for flips in reversed(pair) if flips not in known]
