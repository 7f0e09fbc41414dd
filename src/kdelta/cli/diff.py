# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta diff`: its arguments."""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from kdelta.cli.options import OfProgram
from kdelta.cli.plain_options import PrintOptions
from kdelta.cli.profile import LookOptions, asked_work, is_run, run_failed, selection_of
from kdelta.cli.publish import publish, shown_lab
from kdelta.host.interrupt import run_async
from kdelta.infer.profiles.diff import COMPARED
from kdelta.infer.profiles.profile import Sort
from kdelta.lab.lab import open_store
from kdelta.lab.work import Work
from kdelta.spec.errors import UserError
from kdelta.spec.option import Argument, option
from kdelta.spec.words import compared_words
from kdelta.store.model import Run
from kdelta.studies.diff.model import DiffReport
from kdelta.studies.diff.study import DiffRequest, kernels_diff, run_diff


class DiffOptions(msgspec.Struct, frozen=True):
    """What of two runs is compared."""

    workload: Annotated[
        str,
        option("-w", "--workload", usual="syscalls", help="Run this workload under the kernels."),
    ] = ""
    each: Annotated[
        bool | None,
        option(
            "--each/--whole",
            usual="each where they differ in passes",
            help="Compare one pass of each region, or whole ones.",
        ),
    ] = None
    by: Annotated[
        Sort,
        option(
            "--figure",
            metavar="FIGURE",
            values="|".join(COMPARED),
            help=f"Compare this: {', '.join(COMPARED)}.",
        ),
    ] = Sort.INSNS
    functions: Annotated[
        int, option("--functions", help="Name the N functions that changed most; 0: all.")
    ] = 40
    inlined: Annotated[
        bool, option("--inlined", help="Match what one kernel inlined, by its debug info.")
    ] = False


def diff(
    words: Annotated[
        list[str],
        Argument(
            metavar="A B | KERNEL [+CHANGE...] [KERNEL [+CHANGE...]] [-- COMMAND]",
            help="Two runs by their ids, or their beginnings; or two kernels, which are run if "
            "need be.",
            kernels=True,
            values="RUN|KERNEL",
        ),
    ],
    *,
    looked: LookOptions,
    compared: DiffOptions,
    program: OfProgram,
    printed: PrintOptions,
) -> int:
    """Show what each function gained and lost from A to B.

    One function a line: what was added or removed, per cent of the function's own, its name; most
    added first, the total last. -100.0% is a function that vanished, 0.0% one that is new. What
    runs have not recorded (calls, lines, instructions) is had by making the same runs again.
    """
    by = compared.by
    if by not in COMPARED:
        raise UserError(f"runs are not compared by {by.value}", f"by {', '.join(COMPARED)}")
    request = DiffRequest(
        regions=looked.regions,
        selection=selection_of(looked.contexts, looked.code),
        by=by,
        each=compared.each,
        views=looked.views(),
        inlined=compared.inlined,
        lab=looked.lab,
    )
    report: DiffReport | Run | None = (
        _of_runs(words, request)
        if is_run(words, compared.workload) and program is None
        else _of_kernels(words, asked_work(program, compared.workload, request.regions), request)
    )
    if not isinstance(report, DiffReport):
        return run_failed(report)
    with open_store() as store:
        publish(store, "diff", [report], printed, shown={"functions": compared.functions})
    return 0


def _of_runs(words: Sequence[str], request: DiffRequest) -> DiffReport:
    _must_be_two("runs", words)
    with open_store() as store:
        a, b = (store.run(word) for word in words)
        with shown_lab(store) as lab:
            return run_async(run_diff(a, b, request, lab))


def _of_kernels(words: Sequence[str], asked: Work, request: DiffRequest) -> DiffReport | Run | None:
    specs = [str(spec) for spec in compared_words(words)]
    _must_be_two("kernels", specs)
    with open_store() as store, shown_lab(store) as lab:
        return run_async(kernels_diff((specs[0], specs[1]), asked, request, lab))


def _must_be_two(what: str, words: Sequence[str]) -> None:
    if len(words) != 2:
        hint = "kdelta compare takes many" if len(words) > 2 else "name another one after it"
        raise UserError(f"{len(words)} {what}, not two: {', '.join(words)}", hint)
