# SPDX-License-Identifier: GPL-2.0-or-later
"""What a report of `kdelta gate` is made of, whatever its form."""

import msgspec

from kdelta.infer.effects.gate import Decision, Judged
from kdelta.report.model import CompareReport


class GateReport(msgspec.Struct, frozen=True):
    """What was decided, all verdicts that were looked at, and the comparison that they are from:
    one report for each CPU. `notes`: of regions whose trace was cut off.
    """

    decision: Decision
    judged: tuple[Judged, ...]
    notes: tuple[str, ...] = ()
    compared: tuple[CompareReport, ...] = ()
