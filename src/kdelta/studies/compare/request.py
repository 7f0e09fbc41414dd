# SPDX-License-Identifier: GPL-2.0-or-later
"""What `kdelta compare` is asked."""

from fractions import Fraction

import msgspec

from kdelta.cpus.model import CPU
from kdelta.infer.cycles.ensembles import DEFAULT_LAYOUTS
from kdelta.infer.cycles.placement_model import DEFAULT_MARGIN
from kdelta.infer.effects.effects import MARGIN
from kdelta.studies.lab.request import LabRequest, Program


class CompareRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Kernel specs as text: a base and others. No operations means all of the workload. program:
    what is run in place of the workload; so in the other requests.

    cpus: what model cycles are judged on, each on a machine that looks like it; without any, only
    the path is. layouts: how many are drawn for it. margin: which differences of model cycles
    matter, as a fraction. path_margin: which of paths. states: run what depends on it from other
    states, too. budget_seconds: see `Budget`.
    """

    base: str
    others: tuple[str, ...]
    workload: str = "syscalls"
    operations: tuple[str, ...] = ()
    program: Program | None = None
    cpus: tuple[CPU, ...] = ()
    layouts: int = DEFAULT_LAYOUTS
    margin: float = DEFAULT_MARGIN
    path_margin: Fraction = MARGIN
    states: bool = True
    budget_seconds: Fraction | None = None
    lab: LabRequest = LabRequest()
