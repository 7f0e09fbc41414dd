# SPDX-License-Identifier: GPL-2.0-or-later
"""What a page is made of, whatever study it tells of: the studies' modules fill it.

All texts are plain; the template escapes them. Only a chart's SVG is put in as it is.
"""

from typing import ClassVar, Literal

import msgspec

from kdelta.report.html.flame import Flame

Kind = Literal["name", "text", "number", "word"]
"""What a column holds: a row's name, prose, a figure, a verdict's word."""

_LONG = 40


class Column(msgspec.Struct, frozen=True):
    """A column; `note` says in a sentence what is in it."""

    title: str
    kind: Kind = "text"
    note: str = ""


class Cell(msgspec.Struct, frozen=True):
    """A cell: `sort` is what it is sorted by, if that is not its text. `tone` is a verdict's word,
    which colours it; `link` the id of what it leads to on the page.
    """

    text: str
    sort: float | None = None
    tone: str = ""
    link: str = ""


class Table(msgspec.Struct, frozen=True):
    """Rows of cells, which can be sorted, and if `filtered` picked by the text of their first cell
    and by the first column of words. `foot`: rows that stay below, such as the total.
    """

    form: ClassVar[str] = "table"
    id: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    foot: tuple[tuple[Cell, ...], ...] = ()
    filtered: bool = False

    @property
    def long(self) -> tuple[bool, ...]:
        """Of each column whether there is prose in it, which takes some width to be read."""
        return tuple(
            column.kind == "text" and any(len(row[at].text) > _LONG for row in self.rows)
            for at, column in enumerate(self.columns)
        )

    @property
    def words(self) -> tuple[int, tuple[str, ...]]:
        """The column of words that rows are filtered by, or -1, and the words in it."""
        for at, column in enumerate(self.columns):
            if column.kind == "word":
                return at, tuple(dict.fromkeys(row[at].text for row in self.rows))
        return -1, ()


class Chart(msgspec.Struct, frozen=True):
    """A chart: the caption stands below it, the description is what it says to who cannot see it.
    `svg` is from report/html/svg.py. `wide`: it has a line of its own.
    """

    form: ClassVar[str] = "chart"
    svg: str
    caption: str
    description: str
    wide: bool = False


class Charts(msgspec.Struct, frozen=True):
    """Charts side by side, as far as there is room."""

    form: ClassVar[str] = "charts"
    charts: tuple[Chart, ...]


class Prose(msgspec.Struct, frozen=True):
    """A paragraph; with a `tone`, of that colour."""

    form: ClassVar[str] = "prose"
    text: str
    tone: str = ""


class Facts(msgspec.Struct, frozen=True):
    """Words and what they stand for."""

    form: ClassVar[str] = "facts"
    facts: tuple[tuple[str, str], ...]


class Items(msgspec.Struct, frozen=True):
    """A list."""

    form: ClassVar[str] = "items"
    items: tuple[str, ...]


class Verbatim(msgspec.Struct, frozen=True):
    """Text whose lines stay as they are: a command, a console, a patch."""

    form: ClassVar[str] = "verbatim"
    text: str


class Flames(msgspec.Struct, frozen=True):
    """Flame graphs, of which one is shown at a time."""

    form: ClassVar[str] = "flames"
    id: str
    flames: tuple[Flame, ...]


class Fold(msgspec.Struct, frozen=True):
    """What is shown when it is asked for, and on paper."""

    form: ClassVar[str] = "fold"
    summary: str
    blocks: tuple["Block", ...]
    id: str = ""
    open: bool = False


Block = Table | Chart | Charts | Prose | Facts | Items | Verbatim | Flames | Fold


class Section(msgspec.Struct, frozen=True):
    """A part of the page, with its heading."""

    id: str
    title: str
    blocks: tuple[Block, ...]


class Chip(msgspec.Struct, frozen=True):
    """How many there are of a word, beside the verdict."""

    word: str
    count: int
    tone: str = "same"


class Answer(msgspec.Struct, frozen=True):
    """A verdict in words, which is what a reader sees first. `about` names what it is on, where
    there is more than one.
    """

    sentences: tuple[str, ...]
    chips: tuple[Chip, ...] = ()
    about: str = ""
    tone: str = ""


class Document(msgspec.Struct, frozen=True):
    """A whole page. `question` is its heading, `facts` stand beside the answers."""

    title: str
    question: str
    answers: tuple[Answer, ...]
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    warnings: tuple[str, ...] = ()
