# SPDX-License-Identifier: GPL-2.0-or-later
"""A report as plain text, in lines of 76: the answer first, machine facts last."""

import itertools
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from kdelta.report.document import (
    Block,
    Cell,
    Chart,
    Document,
    Facts,
    Failure,
    Fold,
    Items,
    Point,
    Prose,
    Section,
    Table,
    Verbatim,
)
from kdelta.report.lines import ascii_only

WIDTH = 76
_LABEL = 10
_LEAST_PART = 100
"""A plot is not of less than such a part of the largest figure, from its left to its right end."""

_SIGNS = {"slower": "*", "faster": "*", "placement": "p", "same": "o"}
"""How a plot shows a point of that tone; what is open has another."""

_LEAST_NAME = 24
"""Columns that a table leaves to names, if they are so long."""

GAP = "  "
_LONGEST = 900
"""Characters: a line of a mail may have no more than 998 (RFC 5322, 2.1.1)."""

# A shell's word as host/invoked.py writes it: quoted parts may have spaces in them.
_WORD = re.compile(r"(?:\$'(?:\\.|[^'\\])*'|'[^']*'|\"[^\"]*\"|\\.|[^\s])+", re.DOTALL)


def text_of(document: Document) -> str:
    """Return a document as text for a terminal."""
    lines = [line for one in (*document.made.head, *document.sentences) for line in wrapped(one)]
    lines += [line for one in document.failures for line in ("", *_failure(one))]
    last = len(document.body) - len(document.environment)
    lines += _sections(document.body[:last])
    lines += ["", *_facts(document.facts)] if document.facts else []
    lines += _sections(document.environment)
    return ascii_only(joined(itertools.dropwhile(lambda line: not line, lines)))


def letter_of(document: Document) -> str:
    """Return a document as the text of a mail, which also says what was asked."""
    lines = [*document.made.head, *wrapped(document.made.question), "", *_heading("In short")]
    lines += _bullets(document.sentences)
    lines += [line for one in document.failures for line in ("", *_failure(one))]
    lines += ["", *_facts(document.facts)] if document.facts else []
    return joined([*lines, *_sections(document.body)])


def joined(lines: Iterable[str]) -> str:
    """Return lines as a text, those that no mail could have in more of them."""
    return "\n".join(piece for line in lines for piece in _pieces(line.rstrip())) + "\n"


def _sections(sections: Iterable[Section]) -> Iterator[str]:
    for section in sections:
        shown = [line for block in section.blocks for line in _block(block)]
        if shown:
            heading = _heading(section.title) if section.title else ()
            yield from ("", *heading, *shown[1:])


def _heading(title: str) -> list[str]:
    return [*wrapped(title), "-" * min(WIDTH, len(title))]


def _bullets(texts: Iterable[str]) -> list[str]:
    return [line for text in texts for line in wrapped(f"- {text}", later="  ")]


def _facts(facts: Iterable[tuple[str, str]]) -> list[str]:
    lines = []
    for name, text in facts:
        label = f"{name:<{_LABEL}}" if len(name) < _LABEL else f"{name}: "
        lines += wrapped(f"{label}{text}", later=" " * _LABEL)
    return lines


def _block(block: Block, *, titled: bool = True) -> list[str]:
    """A block in lines, the first of them empty; nothing of one that is only drawn, which a table
    has the figures of.
    """
    match block:
        case Table(rows=(), total=(), foot=()):
            return []
        case Table():
            caption = wrapped(block.caption) if titled and block.caption else []
            lines = [*caption, *table_lines(block)]
        case Fold():
            alone = block.is_table
            inner = [line for one in block.blocks for line in _block(one, titled=not alone)]
            lines = [*wrapped(block.summary), *inner[1 if alone else 0 :]]
        case Prose():
            lines = wrapped(block.text)
        case Facts():
            lines = _facts(block.facts)
        case Chart(shape="history"):
            lines = list(_plot(block))
        case Items():
            lines = _bullets(block.items)
        case Verbatim(command=True):
            lines = list(_command_lines(block.text))
        case Verbatim():
            indent = "" if block.wide else "  "
            lines = [f"{indent}{line}" for line in block.text.splitlines()]
        case _:
            return []
    return ["", *lines]


def _plot(chart: Chart) -> Iterator[str]:
    """A line for each point, between the least figure and the most."""
    points = [one for one in chart.rows if isinstance(one, Point)]
    values = [one.value for one in points]
    if not values:
        return
    # What hardly moves is not to look as if it did.
    least, most = min(values), max(*values, min(values) + abs(max(values)) / _LEAST_PART)
    name = max(len(one.name) for one in points)
    room = WIDTH - name - 2
    ends = f"{least:.6g}", f"{most:.6g}"
    yield from wrapped(chart.caption)
    yield f"{'':<{name}} {ends[0]}{ends[1]:>{room + 1 - len(ends[0])}}"
    for one in points:
        at = round((one.value - least) / (most - least) * room) if most > least else 0
        row = "." * at + _SIGNS.get(one.tone, "?") + "." * (room - at)
        yield f"{one.name:<{name}} {row}"
    yield "* a real step to it, p placement only, ? open, o none"


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
    for number, line in enumerate(failure.text.splitlines()):
        yield from wrapped(line, later="    " if number else "  ")
    yield from (f"  | {ascii_only(line)}"[:WIDTH] for line in failure.console)


def table_lines(table: Table, width: int = WIDTH) -> list[str]:
    """Return a table in lines of that width: names and words to the left, figures to the right.
    Cells that have no room stand below their row, each after its heading, and so does prose.

    Rows that are ordered by the word in their second column stand in groups below that word.
    """
    grouped = _is_grouped(table)
    titles = tuple(column.title for column in table.columns)
    widths = [_width(table, at) for at in range(len(table.columns))]
    inside, below = _split(table, widths, 2 if grouped else 1, width)
    places = [f"{'>' if table.columns[at].kind == 'number' else '<'}{widths[at]}" for at in inside]
    room = width - sum(widths[at] + len(GAP) for at in inside)
    name = min(room, max(len(titles[0]), _longest_name(table)))

    def line(texts: Sequence[str]) -> str:
        found = (f"{GAP}{texts[at]:{place}}" for at, place in zip(inside, places, strict=True))
        return f"{texts[0]:<{name}}{''.join(found)}".rstrip()

    def shown(row: tuple[Cell, ...], also: Sequence[int] = ()) -> Iterator[str]:
        texts = tuple(cell.text for cell in row)
        if len(texts[0]) > name or not inside:
            yield from wrapped(texts[0], later="  ")
            texts = ("", *texts[1:])
        if inside:
            yield line(texts)
        yield from _in_few(f"{titles[at]}: {texts[at]}" for at in (*also, *below) if texts[at])

    lines = [line(titles)] if inside else []
    sizes = Counter(row[1].text for row in table.rows)
    last = ""
    for row in table.rows:
        if grouped and row[1].text != last:
            last = row[1].text
            lines += ["", f"{last} ({sizes[last]})"]
        lines += shown(row)
    lines += [""] if grouped and table.last else []
    lines += [each for row in table.last for each in shown(row, (1,) if grouped else ())]
    return [*lines, *(wrapped(table.notes, later="  ") if table.notes else [])]


def _is_grouped(table: Table) -> bool:
    """Whether rows with the same word in their second column follow each other."""
    if len(table.columns) < 3 or table.columns[1].kind != "word":
        return False
    found = [row[1].text for row in table.rows]
    runs = sum(one != other for one, other in itertools.pairwise(found)) + 1
    return runs == len(set(found)) < len(found)


def _split(
    table: Table, widths: Sequence[int], first: int, width: int
) -> tuple[list[int], list[int]]:
    """Return which columns stand in a row, as many as there is room for, and which below it. Long
    names have lines of their own where that lets all columns stand in a row.
    """
    long = table.long
    every = range(first, len(table.columns))
    figures = [at for at in every if not long[at]]
    inside: list[int] = []
    for least in (0, _LEAST_NAME):
        name = max(len(table.columns[0].title), min(_longest_name(table), least))
        each = (widths[at] + len(GAP) for at in figures)
        inside = figures[: sum(end <= width - name for end in itertools.accumulate(each))]
        if len(inside) == len(figures):
            break
    return inside, [at for at in every if at not in inside]


def _longest_name(table: Table) -> int:
    return max((len(row[0].text) for row in (*table.rows, *table.last)), default=0)


def _width(table: Table, at: int) -> int:
    if table.columns[at].kind == "names":
        return 0
    texts = (row[at].text for row in (*table.rows, *table.last))
    return max(map(len, (table.columns[at].title, *texts)))


def _in_few(texts: Iterable[str]) -> Iterator[str]:
    """Short texts in as few lines as they need, none broken that fits into one."""
    line = ""
    for text in texts:
        if line and len(line) + len(text) + 4 <= WIDTH:
            line += f"; {text}"
            continue
        if line:
            yield from wrapped(line, later="    ")
        line = f"  {text}"
    if line:
        yield from wrapped(line, later="    ")


def wrapped(text: str, later: str = "") -> list[str]:
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
