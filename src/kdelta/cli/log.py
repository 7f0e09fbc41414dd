# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta log`: its arguments."""

from functools import partial
from typing import Annotated

import msgspec

from kdelta.cli.options import CyclesOptions, cycles_on
from kdelta.cli.plain_options import PrintOptions, explain_option
from kdelta.cli.publish import publish, shown_lab
from kdelta.lab.lab import open_store
from kdelta.spec.option import Argument
from kdelta.studies.log.request import HistoryRequest
from kdelta.studies.log.study import run_history

_ALL: list[str] = []


class LogOptions(msgspec.Struct, frozen=True):
    """How many operations are named."""

    explain: Annotated[
        int,
        explain_option(help="Name the N operations that moved most."),
    ] = 8


def log(
    *,
    asked: partial[HistoryRequest],
    cycles: CyclesOptions,
    shown: LogOptions,
    printed: PrintOptions,
    kernels: Annotated[
        list[str],
        Argument(
            metavar="[KERNEL...]",
            help="Only kernels of the store that are called so: a release, the beginning of an "
            "identity, or a part of a spec.",
        ),
    ] = _ALL,
) -> int:
    """Show how a workload's figures moved over the kernels in the store.

    Runs nothing. Kernels are ordered by version, by commit where their repository is there, and
    else by when they were run; what was run on another machine is a series of its own. Real steps
    and such as placement makes are distinguished, by the rules of kdelta compare.
    """
    request = asked(kernels=tuple(kernels))
    judged = cycles_on(cycles, request.cpus, priced="layouts" in asked.keywords)
    request = msgspec.structs.replace(request, cpus=judged or request.cpus, cycles=bool(judged))
    with open_store() as store:
        with shown_lab(store, asks=False) as lab:
            report = run_history(request, lab)
        publish(store, "log", [report], printed, shown={"explain": shown.explain})
    return 0
