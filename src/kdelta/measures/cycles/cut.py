# SPDX-License-Identifier: GPL-2.0-or-later
"""Regions whose trace is larger than its limit: nothing of them is replayed."""

import math

import msgspec

from kdelta.infer.cycles.placement_model import CycleVerdict

OPTION = "--trace-limit"
"""What raises the limit."""


class CutRegion(msgspec.Struct, frozen=True):
    """A region whose trace was cut off at its limit.

    gib      about how many GiB its trace would need; None where nothing of it was kept, and in
             studies of earlier versions, which replayed the first part
    verdict  on its model cycles, where two kernels were to be judged
    """

    name: str
    gib: float | None = None
    verdict: CycleVerdict | None = None


def cut_reason(gib: float | None) -> str:
    """Return why a region was not replayed, and the option that helps."""
    if gib is None:
        return f"its trace does not fit in its limit, which {OPTION} raises"
    return f"its trace would need {gib:g} GiB: {OPTION} {gib:g}"


def cut_note(region: CutRegion) -> str:
    """Return the same as a note."""
    return f"{region.name}: not replayed: {cut_reason(region.gib)}"


def rounded_up(gib: float) -> float:
    """Return a little more than that, in two digits."""
    step = 10.0 ** (math.floor(math.log10(gib)) - 1)
    return float(f"{math.ceil(round(1.1 * gib / step, 6)) * step:.3g}")
