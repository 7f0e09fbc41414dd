# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab that commands pass to studies, and what every study ends with: its report is kept, and
then printed.
"""

import contextlib
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kdelta import __version__
from kdelta.cli.colours import emit_report
from kdelta.cli.output import emit, save
from kdelta.cli.plain_options import PrintOptions
from kdelta.cli.progress import shown_progress
from kdelta.host.command import log_to_stderr
from kdelta.host.interrupt import run_async
from kdelta.host.invoked import invoked
from kdelta.lab.lab import Lab, open_store
from kdelta.report.parts import made_of
from kdelta.report.stored import Stored
from kdelta.report.text import text_of
from kdelta.spec.errors import LabError, UserError, leaves
from kdelta.store.store import Store
from kdelta.studies.flames import flames_of
from kdelta.studies.forms import find_form
from kdelta.studies.forms import html as html_of
from kdelta.studies.kinds import keep, question_of
from kdelta.studies.run.document import RunDetail, run_document
from kdelta.studies.run.model import RunReport

_Request = TypeVar("_Request")
_Report = TypeVar("_Report", bound=msgspec.Struct)


@contextlib.contextmanager
def shown_lab(store: Store, *, asks: bool = True) -> Iterator[Lab]:
    """Yield a lab with that store; when the body ends, its progress is gone from the terminal, and
    what it did is what was asked for last, also if it was refused. asks: else it is not.
    """
    with shown_progress() as progress:
        try:
            yield Lab(store, progress)
        except BaseException as error:
            if asks and (store.is_understood or not is_slip(error)):
                store.enter_last(refused=ending_words(error))
            raise
    if asks:
        store.enter_last()


def is_slip(error: BaseException) -> bool:
    """Return whether nothing but the arguments was wrong."""
    return all(isinstance(one, UserError) for one in leaves(error))


def ending_words(error: BaseException) -> str:
    """Return in a line why a command ended by that."""
    known = [str(one) for one in leaves(error) if isinstance(one, Exception)]
    return "; ".join(dict.fromkeys(known)) or "it was interrupted"


def run_study(
    kind: str,
    study: Callable[[_Request, Lab], Coroutine[Any, Any, _Report]],
    request: _Request,
    printed: PrintOptions,
    *,
    shown: Mapping[str, int] | None = None,
) -> _Report:
    """Runs a study of that kind, publishes its report (see `publish`), and returns that."""
    with open_store() as store:
        with shown_lab(store) as lab:
            report = run_async(study(request, lab))
        publish(store, kind, [report], printed, shown=shown)
    return report


def publish(
    store: Store,
    kind: str,
    reports: Sequence[msgspec.Struct],
    printed: PrintOptions,
    *,
    shown: Mapping[str, int] | None = None,
    text: str | None = None,
    headed: bool = True,
) -> None:
    """Keeps the reports of a study of that kind, then prints them. `shown`: see Stored; `text`:
    what is printed in place of the usual text; `headed`: with the study's id and time before it,
    which else go to the log. That a report cannot be kept loses no report.
    """
    stored = unkept(kind, question_of(kind, reports), reports, invoked.started)
    stored = msgspec.structs.replace(stored, shown=dict(shown or {}))
    try:
        study = keep(stored, store)
        stored = msgspec.structs.replace(stored, id=study.id)
        if kind != "log":  # which looks at what was asked for before
            store.enter_last(study.id)
    except LabError as error:
        log_to_stderr(f"kdelta: the report is printed and not kept: {error.message}")
    finally:  # a fault of kdelta loses no report, either
        if text is not None or not headed:
            for line in made_of(stored).head:
                log_to_stderr(line)
        _show(stored if headed else msgspec.structs.replace(stored, id=""), store, printed, text)


def report_text(kind: str, reports: Sequence[msgspec.Struct], shown: Mapping[str, int]) -> str:
    """Return the text of reports that are not kept; `shown`: see Stored."""
    stored = unkept(kind, question_of(kind, reports), reports, invoked.started)
    return find_form("text").render(msgspec.structs.replace(stored, shown=dict(shown)))


def _show(stored: Stored, store: Store, printed: PrintOptions, text: str | None) -> None:
    try:
        if printed.json and text is None:
            emit(find_form("json").render(stored))
        else:
            emit_report(text if text is not None else find_form("text").render(stored))
    finally:  # whether or not anybody reads it
        if printed.html is not None:
            write_page(printed.html, stored, store)


def runs_printed(reports: Sequence[RunReport], asked: RunDetail) -> str:
    """What is printed of runs, one after the other."""
    return "\n".join(text_of(run_document(unkept_runs((one,)), (one,), asked)) for one in reports)


def unkept_runs(reports: Sequence[RunReport], functions: int = 0) -> Stored:
    """Return the reports of runs as a study is stored; `functions`: see `unkept`."""
    run = reports[0].run.run
    stored = unkept("run", question_of("run", reports), reports, run.started, functions)
    return msgspec.structs.replace(stored, id=run.id if len(reports) == 1 else "")


def write_page(path: Path, stored: Stored, store: Store) -> None:
    """Writes the page of a study, whole or not at all; LabError if it cannot be written."""
    save(path, page_text(stored, store).encode())
    log_to_stderr(f"{path}: html")


def page_text(stored: Stored, store: Store) -> str:
    """Return the page of a study, with flame graphs where the store has profiles of its runs."""
    return html_of(stored, flames_of(stored, store, log_to_stderr))


def unkept(
    kind: str, question: str, reports: Sequence[msgspec.Struct], started: float, functions: int = 0
) -> Stored:
    """Return reports as a study is stored, of what is kept in another way; `functions`: how many
    have flame graphs.
    """
    shown = {"functions": functions} if functions else {}
    return Stored(
        kind,
        question,
        invoked.line,
        started,
        __version__,
        tuple(reports),
        shown,
        invoked.defaults,
    )
