# SPDX-License-Identifier: GPL-2.0-or-later
"""The geometry of what holds lines, pages or branches: sets, ways, what leaves a full set."""

from typing import Literal

import msgspec

from kdelta.spec.errors import UserError

Replacement = Literal["lru", "round-robin", "random"]
"""What leaves a full set: what was used least recently, what came first, or any."""

LRU: Replacement = "lru"


class Cache(msgspec.Struct, frozen=True, omit_defaults=True):
    """A set-associative cache, TLB (a line is a page) or branch target buffer (a line is a byte).
    One set is fully associative.

    Raises UserError unless sets and line_bytes are powers of two and there is at least one way.
    """

    sets: int
    ways: int
    line_bytes: int
    replacement: Replacement = LRU

    def __post_init__(self) -> None:
        """Checks the geometry."""
        for name, value in (("sets", self.sets), ("line_bytes", self.line_bytes)):
            if not is_power_of_two(value):
                raise UserError(f"a cache has {name} = {value}", "it has to be a power of two")
        if self.ways < 1:
            raise UserError(f"a cache has ways = {self.ways}", "it has at least one")

    @property
    def entries(self) -> int:
        """How many lines it holds."""
        return self.sets * self.ways

    @property
    def bytes(self) -> int:
        """How much memory its lines cover."""
        return self.entries * self.line_bytes

    @property
    def fully_associative(self) -> "Cache":
        """One of the same size whose lines can lie anywhere."""
        return Cache(1, self.entries, self.line_bytes, self.replacement)

    @property
    def least_recent(self) -> "Cache":
        """The same, but evicting what was least recently used."""
        return msgspec.structs.replace(self, replacement=LRU)


def is_power_of_two(value: int) -> bool:
    """Of positive numbers only."""
    return value > 0 and value & (value - 1) == 0
