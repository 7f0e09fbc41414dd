# SPDX-License-Identifier: GPL-2.0-or-later
"""`--html FILE`, which every study has: its report as one page for a browser."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from kdelta.cli.output import save, talk
from kdelta.report.stored import Stored
from kdelta.spec.errors import UserError
from kdelta.store.store import Store
from kdelta.studies.flames import flames_of
from kdelta.studies.forms import html


def _writable(path: Path | None) -> Path | None:
    """The path; UserError, before anything runs, if no page can be written there."""
    if path is None:
        return None
    if path.is_dir():
        raise UserError(f"--html {path} is a folder", f"name a file: --html {path / 'report.html'}")
    if not path.parent.is_dir():
        raise UserError(
            f"--html {path}: there is no folder {path.parent}", "make it, or name another one"
        )
    try:
        # A page is written next to it and then renamed, so it is the folder that has to be
        # writable.
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise UserError(
            f"--html {path}: nothing can be written to {path.parent}: {error.strerror}",
            "name a file in another folder; nothing was run yet",
        ) from error
    return path


HtmlFile = Annotated[
    Path | None,
    typer.Option(
        "--html",
        metavar="FILE",
        callback=_writable,
        help="Write the report there, too: one page that any browser opens, offline.",
    ),
]
NoFlame = Annotated[
    bool,
    typer.Option(
        "--no-flame",
        help="With --html: no flame graphs, for which each kernel is run once more.",
    ),
]


def write_page(path: Path, stored: Stored, store: Store) -> None:
    """Writes the page of a study, whole or not at all; LabError if it cannot be written."""
    save(path, page_text(stored, store).encode())


def page_text(stored: Stored, store: Store) -> str:
    """The page of a study, with flame graphs where the store has profiles of its runs."""
    return html(stored, flames_of(stored, store, talk))
