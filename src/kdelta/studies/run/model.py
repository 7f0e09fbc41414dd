# SPDX-License-Identifier: GPL-2.0-or-later
"""What a report of `kdelta run` is made of."""

from fractions import Fraction

import msgspec

from kdelta.counts.model import RunCounts
from kdelta.report.model import ReportedRun


class RunReport(msgspec.Struct, frozen=True):
    """One run alone; no counts if it failed. `stdout` and `stderr` are what the workload
    printed, as far as the guest sent it. `files` are those of the host that its program was given:
    what of each (content, size, folder or link), and its path. `means`: by region the measured
    tasks' own instructions an iteration; older versions did not keep them.
    """

    run: ReportedRun
    counts: RunCounts | None
    stdout: str = ""
    stderr: str = ""
    files: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    means: dict[str, Fraction] = {}
