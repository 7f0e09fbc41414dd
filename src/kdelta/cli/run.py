# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta run`: its arguments."""

from functools import partial
from typing import Annotated

import msgspec

from kdelta import __version__
from kdelta.cli.against import EPILOG, AgainstOptions, run_two
from kdelta.cli.guard import RUNS_FAILED
from kdelta.cli.lab import shown_lab
from kdelta.cli.options import LikeOptions, on_cpu, one_kernel
from kdelta.cli.output import emit
from kdelta.cli.plain_options import Functions, PrintOptions
from kdelta.cli.program import OfProgram
from kdelta.cli.publish import runs_printed, unkept_runs, write_page
from kdelta.host.interrupt import run_async
from kdelta.lab.lab import open_store
from kdelta.lab.request import Program
from kdelta.spec.errors import UserError
from kdelta.spec.option import Argument
from kdelta.studies.documents import document_text
from kdelta.studies.run.assemble import done_report
from kdelta.studies.run.document import BRIEF
from kdelta.studies.run.request import RunRequest
from kdelta.studies.run.study import run_command

__all__ = ["EPILOG", "run"]


class RunOptions(msgspec.Struct, frozen=True):
    """How many functions are named."""

    functions: Functions = BRIEF.functions


def run(
    words: Annotated[
        list[str],
        Argument(
            metavar="KERNEL [+CHANGE...] -- COMMAND",
            help="Kernel spec, perhaps changed.",
            kernels=True,
        ),
    ],
    *,
    asked: partial[RunRequest],
    program: OfProgram,
    against: AgainstOptions,
    like: LikeOptions,
    named: RunOptions,
    printed: PrintOptions,
) -> int:
    """Profile a command under a kernel, exactly.

    Counts what the command executes, in the kernel and outside, by function. The whole command is
    one region, unless it marks its own with kdelta.h. kdelta show prints all of it.
    """
    if program is None and against.old is None:
        raise UserError("no command", f"write it after --: kdelta run {words[0]} -- COMMAND ARGS")
    kernel = one_kernel(words, "kdelta compare runs a command under several")
    request = asked(kernel=kernel, program=program or Program(()))
    request = msgspec.structs.replace(request, lab=on_cpu(request.lab, like.cpu))
    if against.old is not None:
        return run_two(against.old, request, against.margin, printed, functions=named.functions)
    if against.margin is not None:
        raise UserError(
            f"--margin {float(100 * against.margin):g} without --against",
            "kdelta gate takes it, too",
        )
    with open_store() as store:
        with shown_lab(store) as lab:
            found = run_async(run_command(request, lab))
        reports = [done_report(done, store) for done in found]
        if printed.html is not None:
            write_page(printed.html, unkept_runs(reports, named.functions), store)
    if printed.json:
        emit("".join(document_text(one, __version__) for one in reports))
    else:
        emit(runs_printed(reports, msgspec.structs.replace(BRIEF, functions=named.functions)))
    return 0 if any(done.counts for done in found) else RUNS_FAILED
