# SPDX-License-Identifier: GPL-2.0-or-later
"""The parts of a CPU that placement matters to."""

import msgspec

from kdelta.spec.errors import UserError


class Cache(msgspec.Struct, frozen=True):
    """A set-associative cache that evicts what was least recently used.

    Also a TLB (a line is a page) and a table of branch targets. Raises UserError unless sets and
    line_bytes are powers of two and there is at least one way.
    """

    sets: int
    ways: int
    line_bytes: int

    def __post_init__(self) -> None:
        """Checks the geometry."""
        for name, value in (("sets", self.sets), ("line_bytes", self.line_bytes)):
            if value < 1 or value & (value - 1):
                raise UserError(f"a cache has {name} = {value}", "it has to be a power of two")
        if self.ways < 1:
            raise UserError(f"a cache has ways = {self.ways}", "it has at least one")
