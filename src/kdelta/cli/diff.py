# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta diff`: its arguments."""

from collections.abc import Sequence
from typing import Annotated

import typer

from kdelta.cli import options
from kdelta.cli.profile import (
    Annotate,
    CallTree,
    Contexts,
    Cut,
    Only,
    Regions,
    Source,
    asked_work,
    failed,
    is_run,
    selection_of,
)
from kdelta.cli.progress import shown_progress
from kdelta.cli.publish import publish
from kdelta.host.interrupt import run_async
from kdelta.infer.profiles.diff import COMPARED
from kdelta.infer.profiles.profile import Sort
from kdelta.spec.errors import UserError
from kdelta.spec.words import compared_words
from kdelta.store.model import Run
from kdelta.studies.diff.model import DiffReport
from kdelta.studies.diff.study import DiffRequest, kernels_diff, run_diff
from kdelta.studies.lab.lab import open_store
from kdelta.studies.lab.request import LabRequest, Program
from kdelta.studies.lab.work import Work
from kdelta.studies.profile.views import Views


@options.makes_runs(without=options.SINGLE)
def diff(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="A B | KERNEL [+CHANGE...] [KERNEL [+CHANGE...]] [-- COMMAND]",
            help="Two runs by their ids, or their beginnings; or two kernels, which are run if "
            "need be.",
        ),
    ],
    *,
    workload: Annotated[str, options.workload_option(help="Of kernels.  [default: syscalls]")] = "",
    operation: Regions = None,
    program: Program | None,
    context: Contexts = None,
    only: Only = None,
    each: Annotated[
        bool | None,
        typer.Option(
            "--each/--whole",
            help="Figures of one pass of each region, or of whole ones.  [default: of one pass "
            "where regions went through different numbers of them]",
            show_default=False,
        ),
    ] = None,
    by: Annotated[
        Sort, typer.Option("--by", metavar="FIGURE", help=f"Count this: {', '.join(COMPARED)}.")
    ] = Sort.INSNS,
    functions: Annotated[
        int, options.functions_option(help="Name those that changed most; 0 is all.")
    ] = 40,
    calls: CallTree = False,
    cut: Cut = 1.0,
    source: Source = False,
    inlined: Annotated[
        bool, typer.Option("--inlined", help="Match what one kernel inlined, by its debug info.")
    ] = False,
    annotate: Annotate = None,
    lab: LabRequest,
    html: options.HtmlFile = None,
    json: options.Json = False,
) -> int:
    """Show what each function gained and lost from A to B.

    One function a line: what was added or removed, per cent of the function's own, its name; most
    added first, the total last. -100.0% is a function that vanished, 0.0% one that is new. What
    runs have not recorded (calls, lines, instructions) is had by making the same runs again.
    """
    if by not in COMPARED:
        raise UserError(f"runs are not compared by {by.value}", f"by {', '.join(COMPARED)}")
    request = DiffRequest(
        regions=tuple(operation or ()),
        selection=selection_of(context, only),
        by=by,
        each=each,
        views=Views(calls=calls, source=source, annotate=tuple(annotate or ()), part=cut / 100),
        inlined=inlined,
        lab=lab,
    )
    report: DiffReport | Run | None = (
        _of_runs(words, request)
        if is_run(words, workload) and program is None
        else _of_kernels(words, asked_work(program, workload, request.regions), request)
    )
    if not isinstance(report, DiffReport):
        return failed(report)
    with open_store() as store:
        publish(store, "diff", [report], json=json, html=html, shown={"functions": functions})
    return 0


def _of_runs(words: Sequence[str], request: DiffRequest) -> DiffReport:
    _must_be_two("runs", words)
    with open_store() as store:
        a, b = (store.run(word) for word in words)
        with shown_progress() as progress:
            return run_async(run_diff(a, b, store, progress, request))


def _of_kernels(words: Sequence[str], asked: Work, request: DiffRequest) -> DiffReport | Run | None:
    specs = [str(spec) for spec in compared_words(words)]
    _must_be_two("kernels", specs)
    with open_store() as store, shown_progress() as progress:
        return run_async(kernels_diff((specs[0], specs[1]), asked, store, progress, request))


def _must_be_two(what: str, words: Sequence[str]) -> None:
    if len(words) != 2:
        raise UserError(
            f"{len(words)} {what}, not two: {', '.join(words)}", "kdelta compare takes many"
        )
