# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta run`: its arguments."""

from typing import Annotated

import typer
from msgspec.structs import replace

from kdelta import __version__
from kdelta.cli import options
from kdelta.cli.against import EPILOG, run_two
from kdelta.cli.guard import RUNS_FAILED
from kdelta.cli.output import emit
from kdelta.cli.progress import shown_progress
from kdelta.cli.publish import runs_printed, unkept_runs, write_page
from kdelta.host.interrupt import run_async
from kdelta.spec.errors import UserError
from kdelta.studies.documents import document_text
from kdelta.studies.lab.lab import open_store
from kdelta.studies.lab.request import LabRequest, Program
from kdelta.studies.run.assemble import done_report
from kdelta.studies.run.document import BRIEF
from kdelta.studies.run.request import RunRequest
from kdelta.studies.run.study import run_command

__all__ = ["EPILOG", "run"]


@options.makes_runs(perturb=1)
def run(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="KERNEL [+CHANGE...] -- COMMAND", help="Kernel spec, perhaps changed."
        ),
    ],
    *,
    program: Program | None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="OLD",
            help="Compare COMMAND with this program, which gets the same arguments, or with this "
            "quoted command line.",
        ),
    ] = None,
    margin: Annotated[
        float | None,
        options.margin_option(
            help="With --against: slower by no more than this does not count.  [default: 0]"
        ),
    ] = None,
    lab: LabRequest,
    cpu: options.Cpu = "",
    functions: options.Functions = BRIEF.functions,
    json: options.Json = False,
    html: options.HtmlFile = None,
) -> int:
    """Profile a command under a kernel, exactly.

    Counts what the command executes, in the kernel and outside, by function. The whole command is
    one region, unless it marks its own with kdelta.h. kdelta show prints all of it.
    """
    if program is None and against is None:
        raise UserError("no command", f"write it after --: kdelta run {words[0]} -- COMMAND ARGS")
    lab = options.on_cpu(lab, cpu)
    kernel = options.one_kernel(words, "kdelta compare runs a command under several")
    request = RunRequest(kernel=kernel, program=program or Program(()), lab=lab)
    if against is not None:
        return run_two(against, request, margin=margin, functions=functions, json=json, html=html)
    if margin is not None:
        raise UserError(f"--margin {margin:g} without --against", "kdelta gate takes it, too")
    with open_store() as store:
        with shown_progress() as progress:
            found = run_async(run_command(request, store, progress))
        reports = [done_report(done, store) for done in found]
        if html is not None:
            write_page(html, unkept_runs(reports, functions), store)
    if json:
        emit("".join(document_text(one, __version__) for one in reports))
    else:
        emit(runs_printed(reports, replace(BRIEF, functions=functions)))
    return 0 if any(done.counts for done in found) else RUNS_FAILED
