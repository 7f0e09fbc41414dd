# SPDX-License-Identifier: GPL-2.0-or-later
"""What the report of a run by process is made of; the study fills it."""

import msgspec

from kdelta.infer.profiles.processes import Processes
from kdelta.report.model import ReportedRun


class ProcessesReport(msgspec.Struct, frozen=True):
    """Regions of one run by process."""

    run: ReportedRun
    regions: tuple[Processes, ...]
