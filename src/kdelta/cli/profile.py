# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta profile`: its arguments."""

import enum
from collections.abc import Sequence
from typing import Annotated

import typer

from kdelta import __version__
from kdelta.cli import options
from kdelta.cli.output import emit
from kdelta.counts.model import CONTEXTS, Context
from kdelta.infer.profile import Part, Selection, Sort
from kdelta.report.profile_json import profile_json
from kdelta.report.profile_text import profile_text
from kdelta.store.store import LAST
from kdelta.studies.lab import open_store
from kdelta.studies.profile import run_profile


class Whose(enum.StrEnum):
    """Whose work is looked at."""

    OWN = "own"
    INTERRUPTS = "interrupts"
    OTHER = "other"
    ALL = "all"


Regions = Annotated[
    list[str] | None,
    typer.Option(
        "-o",
        "--operation",
        metavar="NAME",
        help="Only this region; may be repeated.  [default: all, summed up]",
    ),
]
Contexts = Annotated[
    list[Whose] | None,
    typer.Option(
        "--context",
        help="Whose work: the measured tasks' own, that of interrupts on their time, of other "
        "tasks, or all; may be repeated.  [default: own]",
    ),
]
Only = Annotated[
    list[Part] | None,
    typer.Option("--only", help="Only this code; may be repeated.  [default: all]"),
]


def profile(
    run: Annotated[
        str, typer.Argument(metavar="[RUN]", help="A run's id, or its beginning, or last.")
    ] = LAST,
    *,
    operation: Regions = None,
    context: Contexts = None,
    only: Only = None,
    functions: options.Functions = 20,
    sort: Annotated[Sort, typer.Option("--sort", help="What functions are ranked by.")] = (
        Sort.INSNS
    ),
    json: options.Json = False,
) -> int:
    """Show where a run's instructions went, function by function.

    The regions of the run are summed up; the lines add up to their total.
    """
    with open_store() as store:
        found = store.run(run)
        report = run_profile(found, store, tuple(operation or ()), selection_of(context, only))
    emit(profile_json(report, __version__) if json else profile_text(report, functions, sort))
    return 0


def selection_of(contexts: Sequence[Whose] | None, parts: Sequence[Part] | None) -> Selection:
    """What is looked at, from the options of these names."""
    asked = {one.value for one in contexts or (Whose.OWN,)}
    chosen: tuple[Context, ...] = tuple(c for c in CONTEXTS if Whose.ALL in asked or c in asked)
    return Selection(chosen, tuple(part for part in Part if not parts or part in parts))
