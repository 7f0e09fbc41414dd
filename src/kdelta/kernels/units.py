# SPDX-License-Identifier: GPL-2.0-or-later
"""The differences between two configs as units that can be flipped by themselves."""

from collections.abc import Callable, Mapping

import msgspec

from kdelta.kernels.kconfig import Config, OptionFlip

Normalize = Callable[[Mapping[str, str]], Config]
"""What the tree's own olddefconfig makes of a config."""


class Unit(msgspec.Struct, frozen=True):
    """Options that can only be flipped together, from their values in A to those in B.

    `name` is the leading option without CONFIG_. `options` are those that a user sets and those
    seen to follow when the unit is flipped after its needs. `shared` follow from several units
    and may flip only once others of them have. `needs` are the names of the units that must be
    flipped before this one can be.
    """

    name: str
    options: tuple[OptionFlip, ...]
    needs: tuple[str, ...] = ()
    shared: tuple[OptionFlip, ...] = ()
