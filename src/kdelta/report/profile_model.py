# SPDX-License-Identifier: GPL-2.0-or-later
"""What the report of a profile is made of; the study fills it."""

import msgspec

from kdelta.infer.profile import RegionProfile, Selection
from kdelta.report.model import ReportedRun


class ProfileReport(msgspec.Struct, frozen=True):
    """Regions of one run by function. calls: what was followed of calls, "all", "kernel" or "none".
    left_out: regions of the run that are not among them.
    """

    run: ReportedRun
    regions: tuple[RegionProfile, ...]
    selection: Selection = Selection()
    calls: str = "none"
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
