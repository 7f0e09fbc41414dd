# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels that distinguish n units with log2(n) builds: each is in its own choice of them.

Every unit gets a number, its code; the kernel of a bit has the units flipped whose code has that
bit. What a unit does then shows in just the kernels of its code (decode.py). A unit can be
flipped only with those that it needs, so their codes have all the bits of its own, and more.
"""

import random
from collections.abc import Mapping, Sequence

from kdelta.infer.search.closed_sets import NOTHING, Needs
from kdelta.infer.search.search_model import FlipSet

LOW = 0.2
"""Up to this chance to matter a unit shares its code with others."""

MOST = 0.35
"""The chances of the units of a group add up to no more: it seldom has to be parted."""

_TRIES = 200


def code_sets(needs: Needs, groups: Sequence[FlipSet]) -> tuple[FlipSet, ...]:
    """The kernels of a code, as few as distinguish the groups; each closed under needs. The kernel
    with all of them flipped counts as one that is there already, so that one may be in no other.

    groups   units that move together; all of them must be closed under needs. Raises ValueError for
             two groups that need each other.
    """
    above = _above(needs, groups)
    bits = code_length(len(groups))
    while (codes := _codes(above, bits)) is None:
        bits += 1
    sets = [
        NOTHING.union(
            *(group for group, code in zip(groups, codes, strict=True) if code >> bit & 1)
        )
        for bit in range(bits)
    ]
    everything = NOTHING.union(*groups)
    return tuple(one for one in sets if one and one != everything)


def code_length(groups: int) -> int:
    """How many kernels `code_sets` takes where no group needs another."""
    return max(1, (groups - 1).bit_length()) if groups else 0


def low_groups(
    needs: Needs, units: Sequence[str], priors: Mapping[str, float]
) -> tuple[FlipSet, ...]:
    """The units, those that are unlikely to matter in groups that are unlikely to. `units` are in
    an order in which each comes after its needs.
    """
    groups: list[FlipSet] = []
    chance, together = 0.0, NOTHING
    for name in units:
        if priors[name] > LOW:
            groups.append(frozenset({name}))
            continue
        if together and chance + priors[name] > MOST:
            groups.append(together)
            chance, together = 0.0, NOTHING
        chance, together = chance + priors[name], together | {name}
    if together:
        groups.append(together)
    try:
        _above(needs, groups)
    except ValueError:
        return tuple(frozenset({name}) for name in units)
    return tuple(groups)


def _above(needs: Needs, groups: Sequence[FlipSet]) -> dict[int, set[int]]:
    """For each group those that need it, each after all that need it."""
    below = [needs.closure(group) - group for group in groups]
    above = {
        i: {j for j, other in enumerate(below) if other & groups[i]} for i in range(len(groups))
    }
    ordered: dict[int, set[int]] = {}
    while len(ordered) < len(groups):
        ready = [i for i in above if i not in ordered and above[i] <= ordered.keys()]
        if not ready:
            raise ValueError("groups of units need each other")
        ordered.update({i: above[i] for i in ready})
    return ordered


def _codes(above: Mapping[int, set[int]], bits: int) -> list[int] | None:
    """A number below 2 ** bits for each group, all different; None if none were found.

    Those on which others depend come last: theirs must have the bits of all of these. Kernels that
    have half of the groups tell most, so codes with half of the bits are taken first, and 0, which
    is seen in the whole alone, last. Where many depend on several, chance finds what this does not.
    """
    chance = random.Random(bits)
    free = sorted(range(1, 1 << bits), key=lambda code: (abs(2 * code.bit_count() - bits), code))
    free.append(0)
    for _ in range(_TRIES):
        codes = _assigned(above, list(free))
        if codes is not None:
            return [codes[i] for i in range(len(above))]
        free.sort(key=lambda code: (chance.random() * code.bit_count(), code))
    return None


def _assigned(above: Mapping[int, set[int]], free: list[int]) -> dict[int, int] | None:
    """Gives each group the first free code that has all bits of those that need it."""
    codes: dict[int, int] = {}
    for index, others in above.items():
        wanted = 0
        for other in others:
            wanted |= codes[other]
        found = next((code for code in free if code & wanted == wanted), None)
        if found is None:
            return None
        codes[index] = found
        free.remove(found)
    return codes
