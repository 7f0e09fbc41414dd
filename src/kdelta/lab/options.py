# SPDX-License-Identifier: GPL-2.0-or-later
"""Fields that the requests of several studies have, with their options."""

from fractions import Fraction
from typing import Annotated, Literal

import msgspec

from kdelta.cpus.model import CPU
from kdelta.infer.clock.decide import LEAST_PERCENT, MOST_PERCENT
from kdelta.lab.request import LabRequest
from kdelta.spec.errors import UserError
from kdelta.spec.option import HelpSection, OptionKind, option, without

Workload = Annotated[
    str, option("-w", "--workload", help="Run this workload; kdelta workloads lists them.")
]
Workloads = Annotated[
    tuple[str, ...],
    option("-w", "--workload", help="Run this workload (see kdelta workloads); repeatable."),
]
Operations = Annotated[
    tuple[str, ...],
    option(
        "-o",
        "--operation",
        usual="all of the workload",
        help="Run only this operation, or region of COMMAND; repeatable.",
    ),
]
Cpus = Annotated[
    tuple[CPU, ...],
    option("--cpu", help="Take the paths of this CPU (see kdelta cpus); repeatable."),
]
Measures = Annotated[
    tuple[str, ...],
    option(
        "--measure",
        metavar="LIST",
        kind=OptionKind.LIST,
        values="path|cycles|clock|conflicts",
        usual="path, and what other options ask for",
        help="Measure these: path, cycles:CPU, clock:kvm, conflicts.",
    ),
]
Layouts = Annotated[
    int, option("--layouts", help="With --cycles: replay each kernel in N random layouts.")
]
RandomLayouts = Annotated[int, option("--layouts", help="Replay in N random layouts.")]
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
        "--search-all", off=True, group=HelpSection.SURE, help="Exclude nothing before the search."
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


Clock = Literal["kvm", "emulated"]
"""Whose time guests are timed by: hardware's under KVM, or QEMU's own, for trying things out."""


MostPairs = Annotated[int, option("--pairs", help="With --clock: time at most N pairs.")]
ClockMargin = Annotated[
    Fraction,
    option(
        "--clock-margin",
        metavar="PCT",
        kind=OptionKind.PERCENT,
        least=LEAST_PERCENT,
        most=MOST_PERCENT,
        group=HelpSection.SURE,
        help="With --clock: ignore differences of time up to PCT.",
    ),
]


class TimedBy(msgspec.Struct, frozen=True, kw_only=True):
    """The clock that operations are timed by, if any; in at most how many pairs of boots; which
    differences of time matter, as a fraction; and whether each boot is of a link of its own.
    """

    clock: Annotated[
        Clock | None,
        option(
            "--clock", metavar="kvm|emulated", help="Time operations in guests by this clock, too."
        ),
    ] = None
    most_pairs: MostPairs = 20
    margin: ClockMargin = Fraction(1, 100)
    links: Annotated[
        bool,
        option(
            "--links",
            group=HelpSection.SURE,
            help="With --clock: link kernels in a random order for each boot.",
        ),
    ] = False

    def check(self) -> None:
        """Raise UserError for options of a clock where no clock is named."""
        if self.clock is None and self != NOT_TIMED:
            raise UserError(
                "--pairs, --clock-margin and --links are of a clock, and none is named",
                "name it: --clock kvm",
            )


NOT_TIMED = TimedBy()


class TimedHere(msgspec.Struct, frozen=True, kw_only=True):
    """Whether programs are timed on this host, under the kernel that runs; in at most how many
    pairs of runs; and which differences of time matter, as a fraction.
    """

    clock: Annotated[
        Literal["this"] | None,
        option(
            "--clock", metavar="this", help="With --against: run both here, too, and time them."
        ),
    ] = None
    most_pairs: MostPairs = 20
    margin: ClockMargin = Fraction(1, 100)

    def check(self, *, against: bool) -> None:
        """Raise UserError for options of a clock where no clock is named, or nothing to compare."""
        if self == TimedHere():
            return
        if not against:
            raise UserError(
                "--clock, --pairs and --clock-margin without --against",
                "name the program to compare with: --against OLD",
            )
        if self.clock is None:
            raise UserError(
                "--pairs and --clock-margin are of a clock, and none is named",
                "name it: --clock this",
            )
