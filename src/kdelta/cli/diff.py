# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta diff`: its arguments."""

from typing import Annotated

import typer

from kdelta import __version__
from kdelta.cli import options
from kdelta.cli.output import emit
from kdelta.cli.profile import Contexts, Only, Regions, selection_of
from kdelta.infer.diff import FIGURES
from kdelta.infer.profile import Sort
from kdelta.report.diff_json import diff_json
from kdelta.report.diff_text import diff_text
from kdelta.spec.errors import UserError
from kdelta.studies.diff import run_diff
from kdelta.studies.lab import open_store


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A run's id, or its beginning.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another one.")],
    *,
    operation: Regions = None,
    context: Contexts = None,
    only: Only = None,
    each: Annotated[
        bool, typer.Option("--each", help="Figures of one pass of each region, not of all.")
    ] = False,
    by: Annotated[
        Sort, typer.Option("--by", help="What is counted: insns, loads, stores, string, special.")
    ] = Sort.INSNS,
    functions: Annotated[
        int,
        typer.Option(
            "--functions", metavar="N", min=0, help="Name those that changed most; 0 is all."
        ),
    ] = 40,
    json: options.Json = False,
) -> int:
    """Show what each function gained and lost from run A to run B.

    One function a line: what was added or removed, per cent of the function's own, its name; most
    added first, the total last. -100.0% is a function that vanished, 0.0% one that is new.
    """
    if by not in FIGURES:
        raise UserError(f"runs are not compared by {by.value}", f"by {', '.join(FIGURES)}")
    with open_store() as store:
        report = run_diff(
            store.run(a),
            store.run(b),
            store,
            tuple(operation or ()),
            selection_of(context, only),
            by=by,
            each=each,
        )
    emit(diff_json(report, __version__) if json else diff_text(report, functions))
    return 0
