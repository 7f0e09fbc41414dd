# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta ablate`: its arguments."""

from functools import partial
from typing import Annotated

import msgspec

from kdelta.cli.codes import RUNS_FAILED
from kdelta.cli.measures import with_measures
from kdelta.cli.options import CyclesOptions, LikeOptions, OfProgram, on_cpu, one_tree, with_model
from kdelta.cli.plain_options import PrintOptions, explain_option
from kdelta.cli.publish import run_study
from kdelta.spec.option import Argument
from kdelta.studies.ablate.request import AblateRequest
from kdelta.studies.ablate.study import run_ablate


class AblateOptions(msgspec.Struct, frozen=True):
    """How many operations are broken down."""

    explain: Annotated[
        int,
        explain_option(help="Break N operations down by option group."),
    ] = 8


def ablate(
    words: Annotated[
        list[str],
        Argument(
            metavar="TREE [+CHANGE...] [-- COMMAND]",
            help="The source that both configs are for.",
            kernels=True,
        ),
    ],
    *,
    asked: partial[AblateRequest],
    like: LikeOptions,
    cycles: CyclesOptions,
    program: OfProgram,
    shown: AblateOptions,
    printed: PrintOptions,
) -> int:
    """Find out which of the options that differ between two configs make the difference.

    Builds and runs both, rules out what reaches no executed code, proves with one more kernel that
    this was right, and searches what is left with few kernels. Everything is kept: interrupted, it
    goes on where it was.
    """
    tree = one_tree(words, "the two configs are for one and the same source")
    request = asked(tree=tree, program=program)
    request, cycles = with_measures(request, cycles)
    lab, cpu = with_model(request.lab, like, cycles, priced="layouts" in asked.keywords)
    request = msgspec.structs.replace(request, lab=on_cpu(lab, cpu), cpu=cpu)
    report = run_study("ablate", run_ablate, request, printed, shown={"explain": shown.explain})
    return RUNS_FAILED if report.failure else 0
