# SPDX-License-Identifier: GPL-2.0-or-later
"""What every study ends with: its report is kept, and then printed."""

import re
import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from kdelta import __version__
from kdelta.cli.html import write_page
from kdelta.cli.output import emit, talk
from kdelta.report.model import RunReport
from kdelta.report.stored import Stored
from kdelta.report.text import text_of
from kdelta.spec.errors import LabError
from kdelta.store.store import Store
from kdelta.studies.forms import find_form
from kdelta.studies.kinds import keep, question_of
from kdelta.studies.run.document import RunDetail
from kdelta.studies.run.document import document as run_document

_HIDDEN = "HIDDEN"
_PASSWORD_OF_URL = re.compile(r"(?<=://)([^/@\s:]*):[^/@\s]+(?=@)")
_SECRET_VARIABLE = re.compile(
    r"(?<!\w)(\w*(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|_PIN|API_?KEY)\w*=)\S+",
    re.IGNORECASE,
)


class _Command(msgspec.Struct):
    """The command that is under way, and since when; in seconds since 1970."""

    line: str = "kdelta"
    started: float = 0.0


_now = _Command()


def begin_command(arguments: Sequence[str]) -> None:
    """Notes which command begins now."""
    _now.line = command_line(["kdelta", *arguments])
    _now.started = time.time()


def publish(
    store: Store,
    kind: str,
    reports: Sequence[msgspec.Struct],
    *,
    json: bool = False,
    shown: Mapping[str, int] | None = None,
    text: str | None = None,
    html: Path | None = None,
) -> None:
    """Keeps the reports of a study of that kind, then prints them. `shown`: see Stored; `text`:
    what is printed in place of the usual text; `html`: where a page of it is written, too. That a
    report cannot be kept loses no report.
    """
    stored = Stored(
        kind=kind,
        question=question_of(kind, reports),
        command=_now.line,
        started=_now.started,
        version=__version__,
        reports=tuple(reports),
        shown=dict(shown or {}),
    )
    try:
        keep(stored, store)
    except LabError as error:
        talk(f"kdelta: the report is printed and not kept: {error.message}")
    finally:  # a fault of kdelta loses no report, either
        _show(stored, store, json=json, text=text, html=html)


def _show(stored: Stored, store: Store, *, json: bool, text: str | None, html: Path | None) -> None:
    try:
        emit(text if text is not None else find_form("json" if json else "text").render(stored))
    finally:  # whether or not anybody reads it
        if html is not None:
            write_page(html, stored, store)
            talk(f"{html}: html")


def write_runs(path: Path, reports: Sequence[RunReport], store: Store, functions: int) -> None:
    """Writes the page of runs, which are no study and are kept alone."""
    started = reports[0].run.run.started
    write_unkept(
        path, unkept("run", question_of("run", reports), reports, started, functions), store
    )


def runs_printed(reports: Sequence[RunReport], asked: RunDetail) -> str:
    """What is printed of runs, one after the other."""
    texts = []
    for one in reports:
        stored = unkept("run", question_of("run", (one,)), (one,), one.run.run.started)
        texts.append(text_of(run_document(stored, (one,), asked)))
    return "\n".join(texts)


def write_unkept(path: Path, stored: Stored, store: Store) -> None:
    """Writes the page of what is no study of its own, and made from what is kept."""
    write_page(path, stored, store)
    talk(f"{path}: html")


def unkept(
    kind: str,
    question: str,
    reports: Sequence[msgspec.Struct],
    started: float,
    functions: int = 0,
) -> Stored:
    """Return reports as a study is stored, of what is kept in another way; `functions`: how many
    have flame graphs.
    """
    shown = {"functions": functions} if functions else {}
    return Stored(kind, question, _now.line, started, __version__, tuple(reports), shown)


def command_line(words: Sequence[str]) -> str:
    """The words as a line for a shell, in printable characters; passwords are hidden."""
    return " ".join(_shell_word(_without_secret(word)) for word in words)


def _shell_word(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    # What a terminal or a mail would not show as it is goes into a $'...' of bash, byte by byte.
    shown = "".join(
        rf"\x{byte:02x}" if not 32 <= byte < 127 else {39: r"\'", 92: r"\\"}.get(byte, chr(byte))
        for byte in word.encode("utf-8", "surrogateescape")
    )
    return f"$'{shown}'"


def _without_secret(word: str) -> str:
    word = _PASSWORD_OF_URL.sub(rf"\1:{_HIDDEN}", word)
    return _SECRET_VARIABLE.sub(rf"\1{_HIDDEN}", word)
