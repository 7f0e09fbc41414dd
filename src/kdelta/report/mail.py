# SPDX-License-Identifier: GPL-2.0-or-later
"""A report as a mail that can be sent as it is: `git send-email FILE`, `mutt -H FILE`.

The headers are those of RFC 5322, made by Python's own library; the text is plain, in lines of 76.
"""

import datetime
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from email.header import Header
from email.utils import format_datetime, formataddr, parseaddr

from kdelta.report.bisect_mail import Regression, regressions
from kdelta.report.bisect_model import BisectReport
from kdelta.report.outline import Failure, Outline, Table
from kdelta.report.outlines.kinds import outline_of
from kdelta.report.stored import Stored

WIDTH = 76
_LABEL = 10
_GAP = "  "
_LONGEST = 900
"""Characters: a line of a mail may have no more than 998 (RFC 5322, 2.1.1)."""

# A shell's word as cli/publish.py writes it: quoted parts may have spaces in them.
_WORD = re.compile(r"(?:\$'(?:\\.|[^'\\])*'|'[^']*'|\"[^\"]*\"|\\.|[^\s])+", re.DOTALL)
_OF_PEOPLE = ("To", "Cc")


def mail(stored: Stored) -> str:
    """The mail; of a bisection that found what is slower, one for each such commit, in the form of
    an mbox if there are more.
    """
    moment = datetime.datetime.fromtimestamp(stored.started, datetime.UTC)
    found = _regressions(stored.one(BisectReport)) if stored.kind == "bisect" else []
    if not found:
        outline = outline_of(stored)
        return message({"Subject": f"[kdelta] {outline.subject}"}, _body(stored, outline), moment)
    mails = [message(one.headers, one.body, moment) for one in found]
    if len(mails) == 1:
        return mails[0]
    line = f"From kdelta {moment.ctime()}\n"
    return "\n".join(line + _quoted_from(one) for one in mails)


def _regressions(report: BisectReport) -> list[Regression]:
    return [] if report.failure else regressions(report)


def message(headers: Mapping[str, str], body: str, moment: datetime.datetime) -> str:
    """A mail with its headers, which are encoded as they must be. Whose it is its sender adds."""
    text = "".join(
        char if char == "\n" or char.isprintable() else ascii(char)[1:-1] for char in body
    )
    charset = "us-ascii" if text.isascii() else "utf-8"
    lines = [_header(name, value) for name, value in headers.items()]
    lines += [
        f"Date: {format_datetime(moment)}",
        "MIME-Version: 1.0",
        f"Content-Type: text/plain; charset={charset}",
        f"Content-Transfer-Encoding: {'7bit' if text.isascii() else '8bit'}",
    ]
    return "\n".join(lines) + f"\n\n{text}"


def _header(name: str, text: str) -> str:
    plain = "".join(char if char.isprintable() else " " for char in text)
    person, address = parseaddr(plain)
    if name in _OF_PEOPLE and address:
        return f"{name}: {formataddr((person, address))}"
    return f"{name}: {Header(plain, maxlinelen=WIDTH, header_name=name).encode()}"


def _quoted_from(text: str) -> str:
    """The body without what a reader of an mbox would take for the next mail."""
    return "".join(
        f">{line}" if line.startswith("From ") else line for line in text.splitlines(keepends=True)
    )


def _body(stored: Stored, outline: Outline) -> str:
    lines = [*_wrapped(stored.question), "", "In short", "--------"]
    lines += [line for text in outline.short for line in _wrapped(f"- {text}", later="  ")]
    for failure in outline.failures:
        lines += ["", *_failure(failure)]
    for table in outline.tables:
        lines += ["", *table_lines(table)]
    for title, texts in (("Notes", outline.notes), ("Warnings", outline.warnings)):
        if texts:
            lines += ["", title, "-" * len(title)]
            lines += [line for text in texts for line in _wrapped(f"- {text}", later="  ")]
    lines += ["", "Environment", "-----------"]
    for name, text in (*outline.facts, ("kdelta", stored.version)):
        label = f"{name:<{_LABEL}}" if len(name) < _LABEL else f"{name}: "
        lines += _wrapped(f"{label}{text}", later=" " * _LABEL)
    lines += ["", "How to reproduce it", "-------------------"]
    lines += _command_lines(stored.command)
    return "\n".join(piece for line in lines for piece in _pieces(line.rstrip())) + "\n"


def _command_lines(command: str) -> Iterator[str]:
    """A command that can be pasted: where it is long, in lines that a shell puts together."""
    line = " "
    for word in _WORD.findall(command):
        if len(line) + len(word) + len(" \\") >= WIDTH and line.strip():
            yield f"{line} \\"
            line = "     "
        line += f" {word}"
    yield line


def _failure(failure: Failure) -> Iterator[str]:
    yield from _wrapped(failure.text, later="  ")
    yield from (f"  | {line}"[:WIDTH] for line in failure.console)


def table_lines(table: Table, width: int = WIDTH) -> list[str]:
    """A table in lines of that width: the name to the left, figures to the right. Where the figures
    leave no room, each row is a name with what it has, a line each.
    """
    lines = [*_wrapped(table.title), "-" * min(width, len(table.title))]
    heads, body = table.heads, table.body
    if table.groups:
        heads, body = _without_second(heads), tuple(map(_without_second, body))
    columns = zip(heads[1:], *(row[1:] for row in body), strict=True)
    widths = [max(map(len, column)) for column in columns]
    room = width - sum(widths) - len(_GAP) * len(widths)
    name = min(room, max(len(row[0]) for row in (heads, *body)))
    roomy = room >= len(heads[0]) + len(_GAP)
    lines += [_cells(heads, widths, name)] if roomy else []
    sizes = Counter(row[1] for row in table.body)
    last = ""
    for row, whole in zip(body, table.body, strict=True):
        if table.groups and whole[1] != last:
            last = whole[1]
            lines += ["", f"{last} ({sizes[last]})"]
        if not roomy:
            lines += _record(heads, row)
            continue
        lines += [row[0]] if len(row[0]) > name else []
        lines.append(_cells(("" if len(row[0]) > name else row[0], *row[1:]), widths, name))
    return [*lines, *(_wrapped(table.note) if table.note else [])]


def _without_second(row: tuple[str, ...]) -> tuple[str, ...]:
    return row[0], *row[2:]


def _cells(row: Sequence[str], widths: Sequence[int], name: int) -> str:
    cells = "".join(f"{_GAP}{cell:>{wide}}" for cell, wide in zip(row[1:], widths, strict=True))
    return f"{row[0]:<{name}}{cells}".rstrip()


def _record(heads: Sequence[str], row: Sequence[str]) -> Iterator[str]:
    yield row[0]
    for head, cell in zip(heads[1:], row[1:], strict=True):
        if cell:
            yield from _wrapped(f"  {head}: {cell}", later="    ")


def _wrapped(text: str, later: str = "") -> list[str]:
    """A text in lines; words are never broken."""
    first = text[: len(text) - len(text.lstrip())]
    return textwrap.wrap(
        text.lstrip(),
        WIDTH,
        initial_indent=first,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [""]


def _pieces(line: str) -> Iterable[str]:
    """A line that no mail could have, in more of them."""
    return [line[at : at + _LONGEST] for at in range(0, len(line), _LONGEST)] or [""]
