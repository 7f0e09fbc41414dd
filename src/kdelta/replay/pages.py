# SPDX-License-Identifier: GPL-2.0-or-later
"""Layouts for a TLB: an order as it was linked, with the borders of pages at random places in it.

A random order of all functions spreads what is executed over all pages of a kernel, which no link
does that keeps the functions of a file together. What varies from one such link to the next is
where in that order a page ends.
"""

import hashlib
from collections.abc import Sequence

import numpy as np

from kdelta.counts.arrays import U64, Flags
from kdelta.cpus.model import Cache
from kdelta.replay.functions import Placement

_LINE_BYTES = 64


def in_order_of(one: Placement, other: Placement) -> U64:
    """Where the functions of one kernel would lie in the order of another: shape (n_functions,).

    Functions of .text that both have, by name, lie where the other has them; what only the one has
    keeps its distance to the one before it that both have. So neither touches more pages because
    other code grew. What is not in .text stays.
    """
    found = one.addresses()
    theirs = {function.name: function.address for function in other.functions[: _in_text(other)]}
    ours = one.functions[: _in_text(one)]
    shared = [index for index, function in enumerate(ours) if function.name in theirs]
    if shared:
        there = np.array([theirs[ours[index].name] for index in shared], dtype=np.uint64)
        moved = there - found[shared]  # wraps around at 2^64, and so does the sum below
        last = np.searchsorted(shared, np.arange(len(ours)), side="right") - 1
        found[: len(ours)] += moved[np.maximum(last, 0)]
    return found


def in_text(placement: Placement) -> Flags:
    """Whether a function lies in .text: shape (n_functions,)."""
    found = np.zeros(len(placement.functions), dtype=bool)
    found[: _in_text(placement)] = True
    return found


def at_borders(orders: Sequence[U64], moves: Flags, draws: Sequence[int], tlb: Cache) -> U64:
    """A layout a draw, (n_draws, n), from orders of (n,) in turn; moves (n,): what is in .text.

    All of that is moved by one number of lines, which the draw stands for: less than the pages that
    go once through the TLB's sets. What else is executed stays.
    """
    lines = max(1, tlb.sets * tlb.line_bytes // _LINE_BYTES)
    shifts = np.array([_random(draw) % lines * _LINE_BYTES for draw in draws], dtype=np.uint64)
    found: U64 = np.stack([orders[number % len(orders)] for number in range(len(draws))])
    found += shifts[:, np.newaxis] * moves
    return found


def _in_text(placement: Placement) -> int:
    """How many functions are in .text; they are the first."""
    low, high = placement.text
    return sum(low <= function.address < high for function in placement.functions)


def _random(draw: int) -> int:
    return int.from_bytes(hashlib.sha256(b"border %d" % draw).digest()[:8], "little")
