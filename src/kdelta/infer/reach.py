# SPDX-License-Identifier: GPL-2.0-or-later
"""Which units of a config diff can reach executed code at all; the others are ruled out unbuilt."""

from collections.abc import Collection, Mapping

import msgspec

from kdelta.kernels.digest import Digest
from kdelta.kernels.mentions import Mentions


class Side(msgspec.Struct, frozen=True):
    """One built kernel, and the names of the functions that its runs executed since power-on."""

    digest: Digest
    executed: frozenset[str]


class AliveObject(msgspec.Struct, frozen=True):
    """An object that executed code depends on, and by what."""

    path: str
    why: str


class RuledOut(msgspec.Struct, frozen=True, tag=True):
    """No executed code depends on the unit. `objects`: how many it reaches, all of them dead."""

    unit: str
    objects: int
    why: str


class Kept(msgspec.Struct, frozen=True, tag=True):
    """What could not be shown to be without effect. `objects`: how many it reaches; `alive`: which
    of them are alive; `places`: what reaches wholes, such as "Makefile:12" or a generated header.
    """

    unit: str
    objects: int
    alive: tuple[AliveObject, ...]
    places: tuple[str, ...]

    @property
    def why(self) -> str:
        """The same in a line."""
        raise NotImplementedError


Reach = RuledOut | Kept


def reach(
    a: Side, b: Side, units: Mapping[str, Collection[str]], mentions: Mentions
) -> dict[str, Reach]:
    """For each unit (name -> its options, "CONFIG_X") whether executed code can depend on it."""
    raise NotImplementedError
