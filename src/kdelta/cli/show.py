# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta show`: one run, or one study."""

from pathlib import Path
from typing import Annotated

import typer

from kdelta import __version__
from kdelta.cli import options
from kdelta.cli.colours import emit_report
from kdelta.cli.output import emit
from kdelta.cli.publish import runs_printed, unkept_runs, write_page
from kdelta.spec.errors import UserError
from kdelta.store.model import Study
from kdelta.store.store import LAST, Store
from kdelta.studies.documents import document_text
from kdelta.studies.forms import find_form
from kdelta.studies.kinds import load
from kdelta.studies.lab.lab import open_store
from kdelta.studies.run.assemble import stored_report
from kdelta.studies.run.document import RunDetail


def show(
    run_id: Annotated[
        str,
        typer.Argument(
            metavar="[ID]", help="A run's or study's id, or its beginning, or last: the last run."
        ),
    ] = LAST,
    *,
    operation: Annotated[
        list[str] | None,
        options.operation_option(help="Name the functions of this region; may be repeated."),
    ] = None,
    functions: options.Functions = 20,
    console: Annotated[
        bool, typer.Option("--console", help="Show what the guest printed, and nothing else.")
    ] = False,
    json: options.Json = False,
    html: options.HtmlFile = None,
) -> None:
    """Show one run, or one study as it was printed.

    Of a run: what its regions cost, and which functions did it; or why it failed.
    """
    with open_store() as store:
        found = store.run(LAST) if run_id == LAST else store.study_or_run(run_id)
        if isinstance(found, Study):
            if console or operation:
                raise UserError(
                    f"cannot show a console or a region of {found.id}: it is a study, not a run",
                    f"kdelta runs lists the runs; the study: kdelta show {found.id}",
                )
            show_study(found, store, json=json, html=html)
            return
        if console:
            text = store.console(found)
        elif json:
            text = document_text(stored_report(found, store), __version__)
        else:
            asked = RunDetail(tuple(operation or ()), functions)
            text = runs_printed([stored_report(found, store)], asked)
        if html is not None:
            write_page(html, unkept_runs([stored_report(found, store)], functions), store)
    emit(text)


def show_study(found: Study, store: Store, *, json: bool, html: Path | None) -> None:
    """Print a study as its command did, or as JSON; `html`: a file for a page of it, too."""
    stored = load(found, store)
    if json:
        emit(find_form("json").render(stored))
    else:
        emit_report(find_form("text").render(stored))
    if html is not None:
        write_page(html, stored, store)
