# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta layout`: its arguments."""

from functools import partial
from typing import Annotated

import msgspec

from kdelta.cli.codes import RUNS_FAILED
from kdelta.cli.named_cpu import named_cpu
from kdelta.cli.options import OfProgram, one_kernel
from kdelta.cli.plain_options import PrintOptions, explain_option
from kdelta.cli.publish import run_study
from kdelta.cpus.catalog import DEFAULT_CPU
from kdelta.spec.option import Argument, HelpSection, option
from kdelta.studies.layout.request import LayoutRequest
from kdelta.studies.layout.study import run_layout


class LayoutOptions(msgspec.Struct, frozen=True):
    """How much is printed of each operation."""

    explain: Annotated[
        int,
        explain_option(help="Break down the N operations that depend on it most."),
    ] = 5
    collisions: Annotated[
        int,
        option(
            "--collisions",
            metavar="N",
            least=0,
            group=HelpSection.SHOWN,
            help="Name N collisions an operation.",
        ),
    ] = 10


def layout(
    words: Annotated[
        list[str],
        Argument(
            metavar="KERNEL [+CHANGE...] [-- COMMAND]",
            help="Kernel spec, perhaps changed.",
            kernels=True,
        ),
    ],
    *,
    asked: partial[LayoutRequest],
    program: OfProgram,
    detail: LayoutOptions,
    printed: PrintOptions,
) -> int:
    """Show how sensitive a workload is to the kernel's function layout.

    Runs the workload once, recorded, and replays the recording with the functions in other places:
    in random orders, and aligned otherwise. Prints how the misses are distributed over these, and
    where the kernel as it is stands among them. Misses are exact; what they cost is an interval.
    """
    request = asked(
        kernel=one_kernel(words, "kdelta compare --cycles holds kernels against each other"),
        cpu=asked.keywords.get("cpu") or named_cpu(DEFAULT_CPU),
        program=program,
    )
    shown = {"explain": detail.explain, "collisions": detail.collisions}
    report = run_study("layout", run_layout, request, printed, shown=shown)
    return 0 if report.regions or report.cut else RUNS_FAILED
