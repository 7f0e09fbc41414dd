# SPDX-License-Identifier: GPL-2.0-or-later
"""What `kdelta layout` is asked."""

import msgspec

from kdelta.cpus.model import CPU
from kdelta.infer.cycles.ensembles import DEFAULT_LAYOUTS
from kdelta.studies.lab.request import LabRequest, Program


class LayoutRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel whose sensitivity to placement is asked for, on a CPU that its machine looks like.
    layouts, seed: of the ensemble. No operations means all of the workload.
    """

    kernel: str
    cpu: CPU
    workload: str = "syscalls"
    operations: tuple[str, ...] = ()
    program: Program | None = None
    layouts: int = DEFAULT_LAYOUTS
    seed: int = 1
    lab: LabRequest = LabRequest(perturbations=1)
