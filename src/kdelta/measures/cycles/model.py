# SPDX-License-Identifier: GPL-2.0-or-later
"""What a report has of model cycles."""

import msgspec

from kdelta.infer.cycles.placement_model import PlacementEffect
from kdelta.measures.cycles.cut import CutRegion
from kdelta.report.model import Mismatch


class CycleReport(msgspec.Struct, frozen=True):
    """What is known of model cycles. `relinked`: regions that execute the same code, only linked
    again. `notes`: what is to be known about regions. `cut`: those whose trace was cut off, which
    are not among the effects.
    """

    effects: tuple[PlacementEffect, ...]
    relinked: tuple[str, ...] = ()
    mismatches: tuple[Mismatch, ...] = ()
    notes: tuple[str, ...] = ()
    cut: tuple[CutRegion, ...] = ()
