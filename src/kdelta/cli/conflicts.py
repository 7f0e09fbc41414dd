# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta conflicts`: its arguments."""

from functools import partial
from typing import Annotated

import msgspec

from kdelta.cli.codes import RUNS_FAILED
from kdelta.cli.options import LikeOptions, OfProgram, on_cpu
from kdelta.cli.plain_options import PrintOptions, explain_option
from kdelta.cli.publish import run_study
from kdelta.spec.errors import UserError
from kdelta.spec.option import Argument
from kdelta.spec.words import parse_kernel_words
from kdelta.studies.conflicts.document import FEW
from kdelta.studies.conflicts.study import ConflictsRequest, run_conflicts

_MOST = 2


class ConflictsOptions(msgspec.Struct, frozen=True):
    """How many regions are explained."""

    explain: Annotated[
        int | None,
        explain_option(usual=f"all of up to {FEW}", help="Show the lines of N regions."),
    ] = None


def conflicts(
    words: Annotated[
        list[str],
        Argument(
            metavar="KERNEL [+CHANGE...] [OTHER [+CHANGE...]] [-- COMMAND]",
            help="A kernel, or two that are compared.",
            kernels=True,
        ),
    ],
    *,
    asked: partial[ConflictsRequest],
    program: OfProgram,
    like: LikeOptions,
    shown: ConflictsOptions,
    printed: PrintOptions,
) -> int:
    """Find the lines of memory that two CPUs contend for, by variable and field.

    Executes pairs of operations on two CPUs at once, or COMMAND, and names each line of 64 bytes
    that one CPU writes and another one accesses in each iteration, and the functions that do so.
    What contends for no line scales. Of two kernels, it shows which lines came and went.
    """
    kernels = [str(spec) for spec in parse_kernel_words(words)]
    if len(kernels) > _MOST:
        raise UserError(
            f"{len(kernels)} kernels, and at most two are compared: {', '.join(kernels)}",
            "compare them pair by pair",
        )
    request = asked(kernels=tuple(kernels), program=program)
    request = msgspec.structs.replace(request, lab=on_cpu(request.lab, like.cpu), cpu=like.cpu)
    explain = {} if shown.explain is None else {"explain": shown.explain}
    report = run_study("conflicts", run_conflicts, request, printed, shown=explain)
    return 0 if all(side.conflicts for side in report.sides) else RUNS_FAILED
