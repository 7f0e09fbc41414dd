# SPDX-License-Identifier: GPL-2.0-or-later
"""Fields that the requests of several studies have, with their options."""

from typing import Annotated

from kdelta.cpus.model import CPU
from kdelta.lab.request import LabRequest
from kdelta.spec.option import HelpSection, OptionKind, option, without

Workload = Annotated[
    str,
    option(
        "-w",
        "--workload",
        metavar="NAME",
        values="WORKLOAD",
        help="Run this workload; kdelta workloads lists them.",
    ),
]
Workloads = Annotated[
    tuple[str, ...],
    option(
        "-w",
        "--workload",
        metavar="NAME",
        values="WORKLOAD",
        help="Run this workload (see kdelta workloads); repeatable.",
    ),
]
Operations = Annotated[
    tuple[str, ...],
    option(
        "-o",
        "--operation",
        metavar="NAME",
        values="OPERATION",
        usual="all of the workload",
        help="Run only this operation; repeatable.",
    ),
]
Cpus = Annotated[
    tuple[CPU, ...],
    option(
        "--cpu",
        metavar="CPU",
        kind=OptionKind.CPU,
        values="CPU",
        help="Judge model cycles on this CPU, too; repeatable.",
    ),
]
OnCPU = Annotated[
    CPU | None,
    option(
        "--cpu",
        metavar="CPU",
        kind=OptionKind.CPU,
        values="CPU",
        help="Judge model cycles on this CPU (see kdelta cpus), too.",
    ),
]
Layouts = Annotated[
    int,
    option(
        "--layouts",
        metavar="N",
        least=2,
        most=100_000,
        group=HelpSection.SURE,
        help="With --cpu: replay each kernel in N random layouts.",
    ),
]
RandomLayouts = Annotated[
    int,
    option(
        "--layouts",
        metavar="N",
        least=2,
        most=100_000,
        group=HelpSection.SURE,
        help="Replay in N random layouts.",
    ),
]
Seed = Annotated[
    int,
    option(
        "--seed", metavar="N", least=0, group=HelpSection.SURE, help="Seed of the random layouts."
    ),
]
MaxBuilds = Annotated[
    int | None,
    option(
        "--max-builds",
        metavar="N",
        least=0,
        group=HelpSection.SURE,
        help="Build at most N kernels besides the two ends.",
    ),
]
SearchAll = Annotated[
    bool,
    option(
        "--search-all",
        off=True,
        group=HelpSection.SURE,
        help="Exclude nothing before the search.",
    ),
]
Recompile = Annotated[
    bool,
    option(
        "--no-recompile",
        off=True,
        group=HelpSection.SURE,
        help="Compile no objects to exclude candidates.",
    ),
]
LabOfPaths = Annotated[LabRequest, without("data_lines")]
"""How runs are made of a study that never records data accesses."""

SINGLE = ("perturbations", "jobs", "cpu")
"""What a command does not ask for that makes one run of a kernel."""

LabOfOne = Annotated[LabRequest, without("data_lines", *SINGLE)]
"""How the one run of a kernel is made."""
