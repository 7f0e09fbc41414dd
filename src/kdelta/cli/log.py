# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta log`: its arguments."""

from typing import Annotated

import typer

from kdelta.cli import options
from kdelta.cli.progress import shown_progress
from kdelta.cli.publish import publish
from kdelta.studies.lab.lab import open_store
from kdelta.studies.lab.request import USUAL_LAB
from kdelta.studies.log.request import HistoryRequest
from kdelta.studies.log.study import run_history


def log(
    kernel: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KERNEL...]",
            help="Only kernels of the store that are called so: a release, the beginning of an "
            "identity, or a part of a spec.",
        ),
    ] = None,
    *,
    workload: options.Workload = "syscalls",
    operation: Annotated[
        list[str] | None,
        options.operation_option(
            help="This one, kernel by kernel; may be repeated.  [default: a summary over all]"
        ),
    ] = None,
    cpu: Annotated[
        list[str] | None,
        options.cpu_option(
            help="Only runs on a machine that looks like this CPU, and their model cycles, too, "
            "where traces are kept; may be repeated."
        ),
    ] = None,
    mode: Annotated[
        str,
        typer.Option(
            "--mode",
            metavar="MODE",
            help="Only runs whose programs were in this mode, as of kdelta compare.",
        ),
    ] = "",
    perturb: Annotated[
        int,
        typer.Option(
            "--perturb", metavar="N", min=1, max=1000, help="Read N perturbed runs of each kernel."
        ),
    ] = USUAL_LAB.perturbations,
    layouts: options.Layouts = options.DEFAULT_LAYOUTS,
    since: Annotated[
        str,
        typer.Option(
            "--since", metavar="WHEN", help="A date such as 2026-01-31, or a version such as 6.12."
        ),
    ] = "",
    limit: Annotated[int, options.limit_option(min=2, help="The last so many kernels.")] = 20,
    explain: Annotated[
        int, options.explain_option(help="Operations to name, those that moved most.")
    ] = 8,
    html: options.HtmlFile = None,
    json: options.Json = False,
) -> int:
    """Show how a workload's figures moved over the kernels in the store.

    Runs nothing. Kernels are ordered by version, by commit where their repository is there, and
    else by when they were run; what was run on another machine is a series of its own. Real steps
    and such as placement makes are distinguished, by the rules of kdelta compare.
    """
    request = HistoryRequest(
        workload=workload,
        operations=tuple(operation or ()),
        kernels=tuple(kernel or ()),
        cpus=options.known_cpus(cpu or ()),
        mode=options.known_mode(mode) if mode else None,
        since=since,
        limit=limit,
        perturbations=perturb,
        layouts=layouts,
    )
    with open_store() as store:
        with shown_progress() as progress:
            report = run_history(request, store, progress)
        publish(store, "log", [report], json=json, shown={"explain": explain}, html=html)
    return 0
