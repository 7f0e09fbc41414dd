# SPDX-License-Identifier: GPL-2.0-or-later
"""What reports say of regions whose trace was cut off at its limit."""

import msgspec

from kdelta.infer.cycles.placement_model import CycleVerdict


class CutMisses(msgspec.Struct, frozen=True):
    """L1I misses of a region's own work, an iteration, as its kernel is linked.

    part   how much of the region's own instructions its trace has, from 0 to 1
    first  in that first part, by the replay; None where nothing fitted into the trace
    whole  in all of the region, counted while it ran; None where that was not to be had
    """

    part: float
    first: float | None
    whole: float | None


class CutRegion(msgspec.Struct, frozen=True):
    """A region whose trace was cut off, by kernel ("kernel", or "base" and "other"): each whose own
    was. verdict: on its model cycles, where two kernels were to be judged and of one there is no
    trace; None where there is an effect.
    """

    name: str
    kernels: dict[str, CutMisses]
    verdict: CycleVerdict | None = None
