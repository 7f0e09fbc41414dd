# SPDX-License-Identifier: GPL-2.0-or-later
"""What the report of two profiles' difference is made of; the study fills it."""

import msgspec

from kdelta.infer.diff import DiffLine
from kdelta.infer.profile import RegionProfile, Selection, Sort
from kdelta.report.model import ReportedRun


class DiffReport(msgspec.Struct, frozen=True):
    """Two runs by function. a_regions, b_regions: those that both have, and that were asked for, in
    one order. each: the lines are of one pass of each region, and not of whole regions. left_out:
    regions that are not among them. notes: in what the runs differ beside their kernels.
    """

    a: ReportedRun
    b: ReportedRun
    a_regions: tuple[RegionProfile, ...]
    b_regions: tuple[RegionProfile, ...]
    lines: tuple[DiffLine, ...]
    selection: Selection = Selection()
    by: Sort = Sort.INSNS
    each: bool = False
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
