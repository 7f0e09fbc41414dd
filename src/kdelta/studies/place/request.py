# SPDX-License-Identifier: GPL-2.0-or-later
"""What `kdelta place` is asked."""

from pathlib import Path

import msgspec

from kdelta.cpus.model import CPU
from kdelta.infer.cycles.ensembles import DEFAULT_LAYOUTS
from kdelta.replay.order import DEFAULT_EVALUATIONS
from kdelta.studies.lab.request import LabRequest


class PlaceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel for which a better order of functions is looked for, to be written to `file`.

    weights: of operations, 1 by default; with several workloads an operation is named
    WORKLOAD/OPERATION. evaluations: the most orders that are judged. seed: of these, and of the
    ensemble that they are compared with, of `layouts`. No operations means all of the workloads.
    apply: relink the kernel in that order, and measure it.
    """

    kernel: str
    cpu: CPU
    file: Path
    workloads: tuple[str, ...] = ("syscalls",)
    operations: tuple[str, ...] = ()
    weights: dict[str, float] = {}
    evaluations: int = DEFAULT_EVALUATIONS
    layouts: int = DEFAULT_LAYOUTS
    seed: int = 1
    apply: bool = False
    lab: LabRequest = LabRequest(perturbations=1)
