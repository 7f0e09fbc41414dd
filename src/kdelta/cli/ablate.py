# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta ablate`: its arguments."""

from typing import Annotated

import typer

from kdelta.cli import options
from kdelta.cli.guard import RUNS_FAILED
from kdelta.cli.program import in_place_of
from kdelta.cli.publish import run_study
from kdelta.studies.ablate.request import AblateRequest
from kdelta.studies.ablate.study import run_ablate
from kdelta.studies.lab.request import DEFAULT_WORKLOAD, LabRequest, Program


@options.makes_runs()
def ablate(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="TREE [+CHANGE...] [-- COMMAND]", help="The source that both configs are for."
        ),
    ],
    *,
    before: Annotated[
        str, typer.Option("--from", metavar="A.config", help="The config to start from.")
    ],
    after: Annotated[str, typer.Option("--to", metavar="B.config", help="The config to get to.")],
    workload: options.Workloads = None,
    program: Program | None,
    one_by_one: Annotated[
        bool,
        typer.Option("--one-by-one", help="Build a kernel for each option group."),
    ] = False,
    max_builds: Annotated[
        int | None, options.max_builds_option(help="The most kernels to build besides A and B.")
    ] = None,
    no_modules: Annotated[
        bool,
        typer.Option("--no-modules", help="Leave out of both configs what would be a module (=m)."),
    ] = False,
    keep_all: Annotated[
        bool, typer.Option("--keep-all", help="Rule no option group out: build for each of them.")
    ] = False,
    no_recompile: Annotated[
        bool,
        typer.Option("--no-recompile", help="Compile no objects to rule option groups out."),
    ] = False,
    no_switches: Annotated[
        bool, typer.Option("--no-switches", help="Do not try what the kernel can switch at boot.")
    ] = False,
    lab: LabRequest,
    cpu: Annotated[
        str,
        options.cpu_option(
            help="Judge model cycles, too, on this CPU, which the machine then looks like: a name "
            "that kdelta cpus lists, or a CPU file."
        ),
    ] = "",
    layouts: options.Layouts = options.DEFAULT_LAYOUTS,
    regions: Annotated[int, options.explain_option(help="Operations to break down by group.")] = 8,
    json: options.Json = False,
    html: options.HtmlFile = None,
) -> int:
    """Find out which of the options that differ between two configs make the difference.

    Builds and runs both, rules out what reaches no executed code, proves with one more kernel that
    this was right, and searches what is left with few kernels. Everything is kept: interrupted, it
    goes on where it was.
    """
    in_place_of(program, next(iter(workload or ()), ""))
    request = AblateRequest(
        tree=options.one_tree(words, "the two configs are for one and the same source"),
        before=before,
        after=after,
        workloads=tuple(workload or [DEFAULT_WORKLOAD]),
        program=program,
        one_by_one=one_by_one,
        max_builds=max_builds,
        no_modules=no_modules,
        rule_out=not keep_all,
        recompile=not no_recompile,
        switches=not no_switches,
        cpu=options.only_cpu(cpu, lab),
        layouts=layouts,
        lab=options.on_cpu(lab, cpu),
    )
    report = run_study(
        "ablate", run_ablate, request, json=json, html=html, shown={"explain": regions}
    )
    return RUNS_FAILED if report.failure else 0
