# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta report`: what is stored, in any form."""

from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from kdelta import __version__
from kdelta.cli import options
from kdelta.cli.listing import studies_text
from kdelta.cli.output import emit, save, talk
from kdelta.cli.publish import page_text, unkept_runs
from kdelta.cli.reports import stored_report
from kdelta.report.kind import ALL
from kdelta.report.model import StudyList
from kdelta.report.stored import Stored
from kdelta.spec.errors import UserError
from kdelta.store.model import Run, Study
from kdelta.store.store import LAST, Store
from kdelta.studies.documents import document_text
from kdelta.studies.forms import FORMS, find_form, form_of_file
from kdelta.studies.kinds import load
from kdelta.studies.lab.lab import open_store

_LISTED = ("text", "json")

EPILOG = "\b\nFormats:\n" + "".join(f"  {name:<9} {form.purpose}\n" for name, form in FORMS.items())


def report(
    study: Annotated[
        str,
        typer.Argument(
            metavar="[ID]", help="A study's or run's id, or its beginning, or last: the last study."
        ),
    ] = LAST,
    *,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            show_default=False,
            help=f"One of {', '.join(FORMS)}.  [default: text, or as FILE ends]",
        ),
    ] = "",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write it there.")
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list", help="List what is stored, the latest first.")
    ] = False,
    show_all: options.All = False,
    limit: Annotated[int, options.limit_option(min=1, help="List the latest so many.")] = 20,
) -> None:
    """Show what a study found, at any time later and in any form.

    Every comparison, ablation, bisection and so on is kept with its report.
    """
    name = form or form_of_file(output.name if output else "")
    chosen = find_form(name)
    if listed and name not in _LISTED:
        raise UserError(f"a list as {name}", f"--list takes {' and '.join(_LISTED)}")
    with open_store() as store:
        if listed:
            found = store.studies(limit)
            as_json = document_text(StudyList(tuple(found)), __version__)
            text = as_json if name == "json" else studies_text(found)
        else:
            one = _stored(store.study_or_run(study), store)
            one = replace(one, shown={**one.shown, ALL: 1}) if show_all else one
            # A page has flame graphs, for which the store has to be looked into.
            text = page_text(one, store) if name == "html" else chosen.render(one)
    if output is None:
        emit(text)
    else:
        save(output, text.encode())
        talk(f"{output}: {name}")


def _stored(found: Study | Run, store: Store) -> Stored:
    if isinstance(found, Study):
        return load(found, store)
    report = unkept_runs([stored_report(found, store)])
    return replace(report, command=f"kdelta show {found.id}")
