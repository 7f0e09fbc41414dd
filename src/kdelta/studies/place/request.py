# SPDX-License-Identifier: GPL-2.0-or-later
"""What `kdelta place` is asked."""

from pathlib import Path
from typing import Annotated

import msgspec

from kdelta.infer.cycles.ensembles import DEFAULT_LAYOUTS
from kdelta.lab.options import (
    NOT_TIMED,
    SINGLE,
    RandomLayouts,
    Seed,
    TimedBy,
    Workloads,
)
from kdelta.lab.request import LabRequest
from kdelta.replay.order import DEFAULT_EVALUATIONS
from kdelta.spec.option import HelpSection, OptionKind, option, without
from kdelta.studies.layout.request import ModelledCPU


class PlaceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel for which a better order of functions is looked for, to be written to `file`.

    weights: of operations, 1 by default; with several workloads an operation is named
    WORKLOAD/OPERATION. evaluations: the most orders that are judged. seed: of these, and of the
    ensemble that they are compared with, of `layouts`. No operations means all of the workloads.
    apply: relink the kernel in that order, and measure it. timed: by which clock it is timed
    besides, against the kernel as linked.
    """

    kernel: str
    cpu: ModelledCPU
    file: Annotated[
        Path,
        option("--output", required=True, group=HelpSection.SHOWN, help="Write the order there."),
    ]
    workloads: Workloads = ("syscalls",)
    operations: Annotated[
        tuple[str, ...],
        option(
            "--operation",
            usual="all of the workloads",
            help="Look only at this operation; repeatable.",
        ),
    ] = ()
    weights: Annotated[
        dict[str, float],
        option(
            "--weight",
            metavar="OPERATION=N",
            kind=OptionKind.WEIGHT,
            usual="1",
            help="Count an operation N times; 0: only show it. Repeatable.",
        ),
    ] = {}
    evaluations: Annotated[
        int,
        option(
            "--effort",
            metavar="N",
            least=0,
            most=10**7,
            group=HelpSection.SURE,
            help="Judge at most N orders.",
        ),
    ] = DEFAULT_EVALUATIONS
    layouts: RandomLayouts = DEFAULT_LAYOUTS
    seed: Seed = 1
    apply: Annotated[
        bool, option("--apply", help="Relink in that order, run it, and count its misses.")
    ] = False
    timed: Annotated[TimedBy, without("links")] = NOT_TIMED
    lab: Annotated[LabRequest, without(*SINGLE)] = LabRequest(perturbations=1)
