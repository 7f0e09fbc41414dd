# SPDX-License-Identifier: GPL-2.0-or-later
"""What `kdelta run` is asked."""

import msgspec

from kdelta.studies.lab.asked import LabOfPaths
from kdelta.studies.lab.request import LabRequest, Program


class RunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A program for a kernel."""

    kernel: str
    program: Program
    lab: LabOfPaths = LabRequest(perturbations=1)
