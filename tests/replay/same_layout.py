# SPDX-License-Identifier: GPL-2.0-or-later
"""A check that two layouts are one."""

from kdelta.counts.arrays import I64
from kdelta.replay.functions import Placement
from kdelta.replay.layouts import ordered
from kdelta.replay.units import Units


def assert_same_layout(placement: Placement, units: Units, order: I64) -> None:
    """For all that is executed or stays."""
    layout, unknown = ordered(placement, units.order(order.tolist()))
    assert not unknown
    counts = [
        units.of_function[index] >= 0 or not placement.functions[index].movable
        for index in units.functions.tolist()
    ]
    found = units.layouts([order])[0]
    assert found[counts].tolist() == layout[units.functions][counts].tolist()
