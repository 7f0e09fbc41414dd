# SPDX-License-Identifier: GPL-2.0-or-later
"""A report as Markdown with GitHub's tables, to be pasted as a comment; details are folded."""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from kdelta.report.document import (
    Block,
    Document,
    Facts,
    Fold,
    Items,
    Prose,
    Section,
    Table,
    Verbatim,
)

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


def markdown_of(document: Document) -> str:
    """The whole; parts are left out from `LIMIT` on, and that is reported."""
    first = ["\n".join(_head(document))]
    parts = ["\n".join(part) for part in _parts(document)]
    last = ["\n".join(part) for section in document.environment for part in _section(section)]
    room = LIMIT - sum(len(part) + 1 for part in (*first, *last))
    ends = itertools.accumulate(len(part) + 1 for part in parts)
    kept = [part for part, end in zip(parts, ends, strict=True) if end <= room]
    left_out = len(parts) - len(kept)
    if left_out:
        found = "part is" if left_out == 1 else "parts are"
        kept.append(
            f"_{left_out} more {found} too long for a comment; the other formats have all._\n"
        )
    return "\n".join([*first, *kept, *last])


def _head(document: Document) -> Iterator[str]:
    yield f"### {inline(document.title)}"
    yield ""
    yield from (f"{escaped(one)}\n" for one in document.made.head)
    yield escaped(document.made.question)
    yield ""
    yield from (f"- {escaped(text)}" for text in document.sentences)
    yield ""


def _parts(document: Document) -> Iterator[list[str]]:
    for failure in document.failures:
        first, *rest = failure.text.splitlines() or [""]
        shown = [*rest, *failure.console]
        yield _folded(first, _verbatim(shown) if shown else [escaped(failure.text)])
    if document.facts:
        yield _folded("What was measured", list(_facts(document.facts)))
    for section in document.body[: -len(document.environment)]:
        yield from _section(section)


def _section(section: Section) -> Iterator[list[str]]:
    """The parts of a section: each of its blocks, or if it is detail one that is folded."""
    shown = [lines for block in section.blocks if (lines := _block(block))]
    if section.detail:
        yield _folded(section.title, [line for lines in shown for line in lines])
        return
    heading = [f"#### {inline(section.title)}", ""]
    for lines in shown:
        yield [*heading, *lines]
        heading = []


def _block(block: Block, *, titled: bool = True) -> list[str]:
    """A block in lines, the last of them empty; nothing of one that is only drawn."""
    match block:
        case Table():
            return list(_table(block, titled=titled))
        case Fold():
            inner = [
                line for one in block.blocks for line in _block(one, titled=not block.is_table)
            ]
            return _folded(block.summary, inner)
        case Prose():
            lines = [escaped(block.text)]
        case Facts():
            lines = list(_facts(block.facts))
        case Items():
            lines = [f"- {escaped(text)}" for text in block.items]
        case Verbatim():
            lines = _verbatim(block.text.splitlines())
        case _:
            return []
    return [*lines, ""]


def _facts(facts: Iterable[tuple[str, str]]) -> Iterator[str]:
    return (f"- **{inline(name)}**: {inline(text)}" for name, text in facts)


def _folded(summary: str, lines: Sequence[str]) -> list[str]:
    # In HTML's own block nothing is Markdown until a blank line.
    lines = lines[:-1] if lines and not lines[-1] else lines
    return ["<details>", f"<summary>{_html(summary)}</summary>", "", *lines, "", "</details>", ""]


def _table(table: Table, *, titled: bool = True) -> Iterator[str]:
    yield from (f"**{inline(table.caption)}**", "") if titled else ()
    yield _row(inline(column.title) for column in table.columns)
    yield _row("---:" if column.kind == "number" else ":---" for column in table.columns)
    for row in table.rows:
        yield _row([_code(row[0].text), *(inline(cell.text) for cell in row[1:])])
    for row in table.last:
        yield _row(f"**{inline(cell.text)}**" if cell.text else "" for cell in row)
    yield from ("", escaped(table.notes)) if table.notes else ()
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
    if found is None or found[0].strip() == ">":  # which is an entity by now
        return shown
    at = found.end() if found[0].strip().isdigit() else found.end() - 1
    return f"{shown[:at]}\\{shown[at:]}"


def inline(text: str) -> str:
    """A text that reads as it is inside of a line, such as in a cell."""
    return _html(_SPECIAL.sub(lambda found: f"\\{found[0]}", text))


def _shown(found: "re.Match[str]") -> str:
    return ascii(found[0])[1:-1]


def _html(text: str) -> str:
    text = _CONTROL.sub(_shown, text.replace("\n", " "))
    text = re.sub("[&<>]", lambda found: _ENTITIES[found[0]], text)
    return _REFERENCE.sub(rf"\1{_NOTHING}", text)
