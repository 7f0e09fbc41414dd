# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta report`: what is stored, in any form."""

from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from kdelta import __version__
from kdelta.cli import options
from kdelta.cli.colours import emit_report
from kdelta.cli.listing import studies_text
from kdelta.cli.output import check_folder, emit, log, save
from kdelta.cli.publish import page_text, unkept_runs
from kdelta.report.kind import ALL
from kdelta.report.model import StudyList
from kdelta.report.stored import Stored
from kdelta.spec.errors import LabError, UserError
from kdelta.store.model import Run, Study
from kdelta.store.store import LAST, Store
from kdelta.studies.documents import document_text
from kdelta.studies.forms import FORMS, find_form, form_of_file
from kdelta.studies.kinds import load, summary_of
from kdelta.studies.lab.lab import open_store
from kdelta.studies.run.assemble import stored_report

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
    if output is not None and not output.exists():
        check_folder(f"-o {output}", output.parent, "a file in another folder")
    if listed and name not in _LISTED:
        raise UserError(f"a list as {name}", f"--list takes {' and '.join(_LISTED)}")
    with open_store() as store:
        if listed:
            found = StudyList(tuple(_summed_up(one, store) for one in store.studies(limit)))
            as_json = name == "json"
            text = document_text(found, __version__) if as_json else studies_text(found.studies)
        else:
            one = _stored(store.study_or_run(study), store)
            one = replace(one, shown={**one.shown, ALL: 1}) if show_all else one
            # A page has flame graphs, for which the store has to be looked into.
            text = page_text(one, store) if name == "html" else chosen.render(one)
    if output is None:
        (emit_report if name == "text" else emit)(text)
    else:
        save(output, text.encode())
        log(f"{output}: {name}")


def _summed_up(study: Study, store: Store) -> Study:
    """The study with its operations and answer, which older versions did not keep."""
    if study.operations or study.answer:
        return study
    try:
        operations, answer = summary_of(load(study, store))
    except LabError:
        return study
    return replace(study, operations=operations, answer=answer)


def _stored(found: Study | Run, store: Store) -> Stored:
    if isinstance(found, Study):
        return load(found, store)
    return replace(unkept_runs([stored_report(found, store)]), command=f"kdelta show {found.id}")
