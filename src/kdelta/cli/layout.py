# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta layout`: its arguments."""

from typing import Annotated

import msgspec
import typer

from kdelta.cli import options
from kdelta.cli.guard import RUNS_FAILED
from kdelta.cli.named_cpu import named_cpu
from kdelta.cli.program import in_place_of
from kdelta.cli.publish import run_study
from kdelta.cpus.catalog import DEFAULT_CPU
from kdelta.studies.lab.request import DEFAULT_WORKLOAD, LabRequest, Program
from kdelta.studies.layout.request import LayoutRequest
from kdelta.studies.layout.study import run_layout

ModelCpu = Annotated[
    str,
    options.cpu_option(
        help="Whose caches: a name that kdelta cpus lists, or a CPU file. The machine looks like "
        "it, too."
    ),
]
Seed = Annotated[
    int,
    typer.Option("--seed", metavar="N", min=0, help="Of the random layouts: the same, the same."),
]


@options.makes_runs(without=options.SINGLE)
def layout(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="KERNEL [+CHANGE...] [-- COMMAND]", help="Kernel spec, perhaps changed."
        ),
    ],
    *,
    workload: options.Workload = "",
    operation: options.Operations = None,
    program: Program | None,
    cpu: ModelCpu = DEFAULT_CPU,
    layouts: options.Layouts = options.DEFAULT_LAYOUTS,
    data: options.Data = False,
    seed: Seed = 1,
    lab: LabRequest,
    explain: Annotated[
        int,
        options.explain_option(
            help="Operations to break down: those on which placement bears most."
        ),
    ] = 5,
    collisions: Annotated[
        int,
        typer.Option("--collisions", metavar="N", min=0, help="Collisions to name an operation."),
    ] = 10,
    json: options.Json = False,
    html: options.HtmlFile = None,
) -> int:
    """Say how much a workload depends on where the linker put the kernel's functions.

    Runs the workload once, recorded, and replays the recording with the functions in other places:
    in random orders, and aligned otherwise. Prints how the misses are distributed over these, and
    where the kernel as it is stands among them. Misses are exact; what they cost is an interval.
    """
    in_place_of(program, workload, operation or ())
    request = LayoutRequest(
        kernel=options.one_kernel(words, "kdelta compare --cpu holds kernels against each other"),
        cpu=named_cpu(cpu),
        workload=workload or DEFAULT_WORKLOAD,
        operations=tuple(operation or ()),
        program=program,
        layouts=layouts,
        seed=seed,
        lab=msgspec.structs.replace(lab, data_lines=data),
    )
    report = run_study(
        "layout",
        run_layout,
        request,
        json=json,
        html=html,
        shown={"explain": explain, "collisions": collisions},
    )
    return 0 if report.regions or report.cut else RUNS_FAILED
