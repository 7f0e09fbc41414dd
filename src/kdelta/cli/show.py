# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta show`: one run, or one study."""

from typing import Annotated

import msgspec

from kdelta import __version__
from kdelta.cli.colours import emit_report
from kdelta.cli.output import emit
from kdelta.cli.plain_options import Functions, PrintOptions
from kdelta.cli.publish import runs_printed, unkept_runs, write_page
from kdelta.lab.lab import open_store
from kdelta.spec.errors import UserError
from kdelta.spec.option import Argument, option
from kdelta.store.model import Study
from kdelta.store.store import LAST, Store
from kdelta.studies.documents import document_text
from kdelta.studies.forms import find_form
from kdelta.studies.kinds import load
from kdelta.studies.run.assemble import stored_report
from kdelta.studies.run.document import RunDetail


class ShowOptions(msgspec.Struct, frozen=True):
    """What of a run is shown."""

    operations: Annotated[
        tuple[str, ...],
        option("-o", "--operation", help="Name the functions of this region; repeatable."),
    ] = ()
    functions: Functions = 20
    console: Annotated[
        bool, option("--console", help="Show what the guest printed, and nothing else.")
    ] = False


def show(
    *,
    asked: ShowOptions,
    printed: PrintOptions,
    run_id: Annotated[
        str,
        Argument(
            metavar="[ID]",
            help="A run's or study's id, or its beginning, or last: what was asked last.",
            values="STUDY|RUN",
        ),
    ] = LAST,
) -> None:
    """Show one run, or one study as it was printed.

    Of a run: what its regions cost, and which functions did it; or why it failed.
    """
    with open_store() as store:
        of_run = asked.console or bool(asked.operations)
        found = (
            store.run(LAST)
            if run_id == LAST and (of_run or not store.last)
            else store.study_or_run(run_id)
        )
        if isinstance(found, Study):
            if of_run:
                raise UserError(
                    f"cannot show a console or a region of {found.id}: it is a study, not a run",
                    f"kdelta runs lists the runs; the study: kdelta show {found.id}",
                )
            show_study(found, store, printed)
            return
        if asked.console:
            text = store.console(found)
        elif printed.json:
            text = document_text(stored_report(found, store), __version__)
        else:
            detail = RunDetail(asked.operations, asked.functions)
            text = runs_printed([stored_report(found, store)], detail)
        if printed.html is not None:
            page = unkept_runs([stored_report(found, store)], asked.functions)
            write_page(printed.html, page, store)
    emit(text)


def show_study(found: Study, store: Store, printed: PrintOptions) -> None:
    """Print a study as its command did, or as JSON; with a page of it, too."""
    stored = load(found, store)
    if printed.json:
        emit(find_form("json").render(stored))
    else:
        emit_report(find_form("text").render(stored))
    if printed.html is not None:
        write_page(printed.html, stored, store)
