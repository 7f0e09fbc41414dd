# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels that tell n units apart with log2(n) builds: each is in its own choice of them.

Every unit gets a number, its code; the kernel of a bit has the units flipped whose code has that
bit. What a unit does then shows in just the kernels of its code (infer/decode.py). A unit can be
flipped only with those that it needs, so their codes have all the bits of its own, and more.
"""

import random
from collections.abc import Sequence

from kdelta.infer.closed_sets import Needs
from kdelta.infer.search_model import FlipSet

_TRIES = 200


def code_sets(needs: Needs, units: Sequence[str]) -> tuple[FlipSet, ...]:
    """The kernels of a code for these units, as few as tell all of them apart; each closed under
    needs. The kernel with all of them flipped counts as one that is there already, so that one
    unit may be in no other. `units` must be closed under needs.
    """
    bits = max(1, (len(units) - 1).bit_length())
    while (codes := _codes(needs, units, bits)) is None:
        bits += 1
    sets = [frozenset(name for name in units if codes[name] >> bit & 1) for bit in range(bits)]
    return tuple(one for one in sets if one and len(one) < len(units))


def code_length(units: int) -> int:
    """How many kernels `code_sets` takes where no unit needs another."""
    return max(1, (units - 1).bit_length()) if units else 0


def _codes(needs: Needs, units: Sequence[str], bits: int) -> dict[str, int] | None:
    """A number below 2 ** bits for each unit, all different; None if none were found.

    Those on which others depend come last: theirs must have the bits of all of these. Kernels that
    have half of the units tell most, so codes with half of the bits are taken first, and 0, which
    is seen in the whole alone, last. Where many depend on several, chance finds what this does not.
    """
    order = list(reversed(needs.in_order(units, {})))
    chance = random.Random(bits)
    free = sorted(range(1, 1 << bits), key=lambda code: (abs(2 * code.bit_count() - bits), code))
    free.append(0)
    for _ in range(_TRIES):
        codes = _assigned(needs, order, list(free))
        if codes is not None:
            return codes
        free.sort(key=lambda code: (chance.random() * code.bit_count(), code))
    return None


def _assigned(needs: Needs, order: Sequence[str], free: list[int]) -> dict[str, int] | None:
    """Gives each unit the first free code that has all bits of those that need it."""
    codes: dict[str, int] = {}
    for name in order:
        above = 0
        for other, code in codes.items():
            if name in needs.below(other):
                above |= code
        found = next((code for code in free if code & above == above), None)
        if found is None:
            return None
        codes[name] = found
        free.remove(found)
    return codes
