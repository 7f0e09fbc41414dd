# SPDX-License-Identifier: GPL-2.0-or-later
"""What `kdelta run` is asked."""

from typing import Annotated

import msgspec

from kdelta.lab.request import LabRequest, Program
from kdelta.spec.option import without


class RunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A program for a kernel."""

    kernel: str
    program: Program
    lab: Annotated[LabRequest, without("data_lines", "trace_limit")] = LabRequest(perturbations=1)
