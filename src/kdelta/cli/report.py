# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta report`: what is stored, in any form."""

import os
import sys
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec.structs import replace

from kdelta import __version__
from kdelta.cli.colours import emit_report
from kdelta.cli.listing import studies_text
from kdelta.cli.output import check_folder, emit, must_be_outside, save
from kdelta.cli.plain_options import All
from kdelta.cli.publish import page_text, unkept_runs
from kdelta.host.command import log_to_stderr
from kdelta.lab.lab import open_store
from kdelta.report.kind import ALL
from kdelta.report.lines import WIDTH
from kdelta.report.model import StudyList
from kdelta.report.stored import Stored
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.option import Argument, HelpSection, option
from kdelta.store.model import Run, Study
from kdelta.store.store import LAST, Store
from kdelta.studies.documents import document_text
from kdelta.studies.forms import FORMS, find_form, form_of_file
from kdelta.studies.kinds import load, summary_of
from kdelta.studies.run.assemble import stored_report

_LISTED = ("text", "json")
_NO_TERMINAL = 200
"""Columns of a list that goes to a file or a program."""

EPILOG = "\b\nFormats:\n" + "".join(f"  {name:<9} {form.purpose}\n" for name, form in FORMS.items())


class ReportOptions(msgspec.Struct, frozen=True):
    """In which form, and where."""

    name: Annotated[
        str,
        option(
            "--format",
            metavar="FORMAT",
            group=HelpSection.SHOWN,
            usual="text, or as FILE ends",
            values="|".join(FORMS),
            help="Print it in this form; the list is below.",
        ),
    ] = ""
    output: Annotated[
        Path | None, option("--output", group=HelpSection.SHOWN, help="Write it there.")
    ] = None
    listed: Annotated[bool, option("--list", help="List what is stored, the latest first.")] = False
    show_all: All = False
    limit: Annotated[int, option("-n", "--limit", help="List the latest N.")] = 20


def report(
    *,
    asked: ReportOptions,
    study: Annotated[
        str,
        Argument(
            metavar="[ID]",
            help="A study's or run's id, or its beginning, or last: what was asked last.",
            values="STUDY",
        ),
    ] = LAST,
) -> None:
    """Show what a study found, at any time later and in any form.

    Every comparison, ablation, bisection and so on is kept with its report.
    """
    output = asked.output
    name = asked.name or form_of_file(output.name if output else "")
    chosen = find_form(name)
    if output is not None:
        must_be_outside(f"--output {output}", output, "a file in another folder")
    if output is not None and not output.exists():
        check_folder(f"--output {output}", output.parent, "a file in another folder")
    if asked.listed and name not in _LISTED:
        raise UserError(f"a list as {name}", f"--list takes {' and '.join(_LISTED)}")
    with open_store() as store:
        if asked.listed:
            found = StudyList(tuple(_summed_up(one, store) for one in store.studies(asked.limit)))
            if name == "json":
                text = document_text(found, __version__)
            else:
                text = studies_text(found.studies, _columns())
        else:
            one = _stored(store.study_or_run(study), store)
            one = replace(one, shown={**one.shown, ALL: 1}) if asked.show_all else one
            # A page has flame graphs, for which the store has to be looked into.
            text = page_text(one, store) if name == "html" else chosen.render(one)
    if output is None:
        (emit_report if name == "text" else emit)(text)
    else:
        save(output, text.encode())
        log_to_stderr(f"{output}: {name}")


def _columns() -> int:
    """Return how long a line of the list may be: as wide as a terminal, and elsewhere wider."""
    try:
        return max(WIDTH, os.get_terminal_size(sys.stdout.fileno()).columns)
    except (OSError, ValueError):  # it is no terminal, or none that says it
        return _NO_TERMINAL


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
