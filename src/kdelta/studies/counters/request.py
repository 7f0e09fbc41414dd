# SPDX-License-Identifier: GPL-2.0-or-later
"""What `kdelta clock check --counts` is asked."""

from fractions import Fraction
from pathlib import Path

import msgspec

from kdelta.lab.request import LabRequest


class CountersRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel, and the files or folders that a bundle wrote under it. No file: the bundle of a
    workload runs here. operations: the only ones that are checked; none: all. margin: by which part
    counts may differ and agree.
    """

    kernel: str
    files: tuple[Path, ...] = ()
    workload: str = "syscalls"
    operations: tuple[str, ...] = ()
    margin: Fraction = Fraction(1, 100)
    lab: LabRequest = LabRequest()
