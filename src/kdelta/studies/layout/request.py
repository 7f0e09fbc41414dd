# SPDX-License-Identifier: GPL-2.0-or-later
"""What `kdelta layout` is asked."""

from typing import Annotated

import msgspec

from kdelta.cpus.catalog import DEFAULT_CPU
from kdelta.cpus.model import CPU
from kdelta.infer.cycles.ensembles import DEFAULT_LAYOUTS
from kdelta.lab.options import SINGLE, Operations, RandomLayouts, Seed, Workload
from kdelta.lab.request import LabRequest, Program
from kdelta.spec.option import option, without

ModelledCPU = Annotated[
    CPU,
    option("--cpu", usual=DEFAULT_CPU, help="Model the caches of this CPU (see kdelta cpus)."),
]


class LayoutRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel whose sensitivity to placement is asked for, on a CPU that its machine looks like.
    layouts, seed: of the ensemble. No operations means all of the workload.
    """

    kernel: str
    cpu: ModelledCPU
    workload: Workload = "syscalls"
    operations: Operations = ()
    program: Program | None = None
    layouts: RandomLayouts = DEFAULT_LAYOUTS
    seed: Seed = 1
    lab: Annotated[LabRequest, without(*SINGLE)] = LabRequest(perturbations=1)
