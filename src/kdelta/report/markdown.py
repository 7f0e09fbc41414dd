# SPDX-License-Identifier: GPL-2.0-or-later
"""A report as Markdown with GitHub's tables, to be pasted as a comment; details are folded."""

import re
from collections.abc import Iterable, Iterator, Sequence

from kdelta.report.outline import Failure, Outline, Table
from kdelta.report.outlines.kinds import outline_of
from kdelta.report.stored import Stored

LIMIT = 60_000
"""Characters: GitHub refuses a comment of more than 65,536."""

# What means something inside of a line; HTML's own signs come as entities.
_SPECIAL = re.compile(r"[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])")
_LEADING = re.compile(r"\s*(?:[-+=#>]|\d{1,9}(?=[.)](?:\s|\Z)))")
# GitHub looks for names and numbers of issues in what it has rendered: no backslash keeps it from
# that, but nothing that is not shown may stand between.
_REFERENCE = re.compile(r"([@#])(?=\w)")
_NOTHING = "<!-- -->"
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def markdown(stored: Stored) -> str:
    """The whole; details are left out from `LIMIT` on, and that is said."""
    outline = outline_of(stored)
    head = "\n".join(_head(stored, outline))
    details = ["\n".join(one) for one in _details(stored, outline)]
    kept: list[str] = []
    size = len(head)
    for one in details:
        size += len(one) + 1
        if size <= LIMIT:
            kept.append(one)
    left_out = len(details) - len(kept)
    if left_out:
        parts = "part is" if left_out == 1 else "parts are"
        kept.append(
            f"_{left_out} more {parts} too long for a comment; the other formats have all._\n"
        )
    return "\n".join([head, *kept])


def _head(stored: Stored, outline: Outline) -> Iterator[str]:
    yield f"### {inline(outline.subject)}"
    yield ""
    yield escaped(stored.question)
    yield ""
    yield from (f"- {escaped(text)}" for text in outline.short)
    yield ""
    for table in outline.tables:
        if not table.folded:
            yield from _table(table)


def _details(stored: Stored, outline: Outline) -> Iterator[list[str]]:
    for failure in outline.failures:
        yield _folded(failure.text, _console(failure))
    for table in outline.tables:
        if table.folded:
            yield _folded(table.title, list(_table(table, titled=False)))
    for title, texts in (("Notes", outline.notes), ("Warnings", outline.warnings)):
        if texts:
            yield _folded(title, [f"- {escaped(text)}" for text in texts])
    facts = [f"- **{inline(name)}**: {inline(text)}" for name, text in outline.facts]
    reproduce = [*_verbatim([stored.command]), "", *facts]
    yield _folded(f"Environment, and how to reproduce it with kdelta {stored.version}", reproduce)


def _folded(summary: str, lines: Sequence[str]) -> list[str]:
    # In HTML's own block nothing is Markdown until a blank line.
    return ["<details>", f"<summary>{_html(summary)}</summary>", "", *lines, "", "</details>", ""]


def _console(failure: Failure) -> list[str]:
    return _verbatim(failure.console) if failure.console else [escaped(failure.text)]


def _table(table: Table, *, titled: bool = True) -> Iterator[str]:
    if titled:
        yield f"**{inline(table.title)}**"
        yield ""
    yield _row(inline(head) for head in table.heads)
    # Names and words stand left, figures right.
    words = {0, *(at for at, head in enumerate(table.heads) if head in {"verdict", "most in"})}
    yield _row(":---" if at in words else "---:" for at in range(len(table.heads)))
    for row in table.rows:
        yield _row([_code(row[0]), *(inline(cell) for cell in row[1:])])
    if table.total:
        yield _row(f"**{inline(cell)}**" if cell else "" for cell in table.total)
    if table.note:
        yield ""
        yield escaped(table.note)
    yield ""


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _code(text: str) -> str:
    """A name as code. In a table a pipe is escaped even there, and in code a backtick needs more of
    them around it.
    """
    text = _CONTROL.sub(_shown, text).replace("|", r"\|")
    if not text.strip():
        return inline(text)
    runs = {len(run) for run in re.findall("`+", text)}
    fence = next("`" * count for count in range(1, len(text) + 2) if count not in runs)
    room = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{room}{text}{room}{fence}"


def _verbatim(lines: Sequence[str]) -> list[str]:
    """Lines as they are, in a fence that is longer than any in them."""
    shown = [_CONTROL.sub(_shown, line) for line in lines]
    longest = max((len(run) for line in shown for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, *shown, fence]


def escaped(text: str) -> str:
    """A text that reads as it is in a paragraph or in a list."""
    shown = inline(text)
    found = _LEADING.match(text)
    if found is None:
        return shown
    if found[0].strip() == ">":
        return shown  # it is an entity by now
    at = found.end() if found[0].strip().isdigit() else found.end() - 1
    return f"{shown[:at]}\\{shown[at:]}"


def inline(text: str) -> str:
    """A text that reads as it is inside of a line, such as in a cell."""
    text = _CONTROL.sub(_shown, text.replace("\n", " "))
    text = _SPECIAL.sub(lambda found: f"\\{found[0]}", text)
    text = re.sub("[&<>]", lambda found: _ENTITIES[found[0]], text)
    return _REFERENCE.sub(rf"\1{_NOTHING}", text)


def _shown(found: "re.Match[str]") -> str:
    return ascii(found[0])[1:-1]


def _html(text: str) -> str:
    text = _CONTROL.sub(_shown, text.replace("\n", " "))
    text = re.sub("[&<>]", lambda found: _ENTITIES[found[0]], text)
    return _REFERENCE.sub(rf"\1{_NOTHING}", text)
