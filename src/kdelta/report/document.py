# SPDX-License-Identifier: GPL-2.0-or-later
"""What every form of a report is made from: one document for each kind of study.

All texts are plain: each form escapes them, and draws the charts if it can.
"""

import enum
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Literal

import msgspec

from kdelta.report.flame import Flame
from kdelta.report.lines import merged
from kdelta.spec.errors import LabError
from kdelta.store.model import moment_text

ColumnKind = Literal["name", "text", "number", "word", "names"]
"""Names: they stand last and may reach over a line's end, since a name that is cut is not found."""
"""What a column holds: a row's name, prose, a figure, a verdict's word."""

ChartShape = Literal["effects", "history", "spreads"]
"""What a chart draws: effects around zero, one figure from kernel to kernel, distributions."""

_LONG = 40


class FormedBlock(msgspec.Struct, frozen=True):
    """What a block is derived from. `form`: of which kind it is, for the page's template."""

    @property
    def form(self) -> str:
        """The name of its type in small letters."""
        return type(self).__name__.lower()


class Column(msgspec.Struct, frozen=True):
    """A column; `note` says in a sentence what is in it. `sums`: its rows add up to the total."""

    title: str
    kind: ColumnKind = "text"
    note: str = ""
    sums: bool = False


class Cell(msgspec.Struct, frozen=True):
    """A cell: `sort` is what it is sorted by, if that is not its text. `tone` is a verdict's word,
    which colours it; `link` the id of what it leads to on the page.
    """

    text: str
    sort: float | None = None
    tone: str = ""
    link: str = ""


class Table(FormedBlock, frozen=True):
    """Rows of cells, which can be sorted, and if `filtered` picked by the text of their first cell
    and by the first column of words. `total`: the row that stays below; `foot`: what else does.

    LabError when it is made if a column that sums does not add up to the total as printed.
    """

    id: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: tuple[Cell, ...] = ()
    foot: tuple[tuple[Cell, ...], ...] = ()
    filtered: bool = False

    def __post_init__(self) -> None:
        for at, column in enumerate(self.columns):
            if not column.sums or not self.total:
                continue
            found = sum((figure_of(row[at]) for row in self.rows), Fraction(0))
            if found != figure_of(self.total[at]):
                raise LabError(
                    f"{self.caption}: the rows of {column.title} add up to {float(found)}, and the "
                    f"total is {self.total[at].text}",
                    "this is an error of kdelta; please report it with the output of --format json",
                )

    @property
    def last(self) -> tuple[tuple[Cell, ...], ...]:
        """The rows that stay below."""
        return (self.total, *self.foot) if self.total else self.foot

    @property
    def notes(self) -> str:
        """What is in its columns, in a line."""
        return "; ".join(f"{one.title}: {one.note}" for one in self.columns if one.note)

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
        at = next((at for at, one in enumerate(self.columns) if one.kind == "word"), -1)
        return at, tuple(dict.fromkeys(row[at].text for row in self.rows)) if at >= 0 else ()


def figure_of(cell: Cell) -> Fraction:
    """A cell's figure as printed; what has none adds nothing."""
    return Fraction(cell.text) if cell.text not in {"", "-"} else Fraction(0)


class Point(msgspec.Struct, frozen=True):
    """A row of a chart of effects or of a history: a figure with its interval. `tone` is a name of
    report/html/static/page.css.
    """

    name: str
    value: float
    low: float
    high: float
    tone: str


class Spread(msgspec.Struct, frozen=True):
    """A row of a chart of distributions: an ensemble, and the layout as linked. `colour` is
    a name of report/html/static/page.css.
    """

    name: str
    draws: tuple[float, ...]
    as_linked: float
    colour: str


class Chart(FormedBlock, frozen=True):
    """A chart: the caption stands below it, the description is what it says to who cannot see it.
    `rows` have unique names. `wide`: it has a line of its own.
    """

    shape: ChartShape
    rows: tuple[Point, ...] | tuple[Spread, ...]
    unit: str
    caption: str
    description: str
    wide: bool = False


class Charts(FormedBlock, frozen=True):
    """Charts side by side, as far as there is room."""

    charts: tuple[Chart, ...]


class Prose(FormedBlock, frozen=True):
    """A paragraph; with a `tone`, of that colour."""

    text: str
    tone: str = ""


class Facts(FormedBlock, frozen=True):
    """Words and what they stand for."""

    facts: tuple[tuple[str, str], ...]


class Items(FormedBlock, frozen=True):
    """A list."""

    items: tuple[str, ...]


class Verbatim(FormedBlock, frozen=True):
    """Text whose lines stay as they are: a console, a patch, or a `command`. `wide`: its lines are
    as long as a terminal's.
    """

    text: str
    command: bool = False
    wide: bool = False


class Flames(FormedBlock, frozen=True):
    """Flame graphs, of which one is shown at a time."""

    id: str
    flames: tuple[Flame, ...]


class Fold(FormedBlock, frozen=True):
    """What is shown when it is asked for, and on paper. `always`: however few are asked for."""

    summary: str
    blocks: tuple["Block", ...]
    id: str = ""
    open: bool = False
    always: bool = False

    @property
    def is_table(self) -> bool:
        """Whether a table is alone in it, which then needs no caption."""
        return len(self.blocks) == 1 and isinstance(self.blocks[0], Table)


Block = Table | Chart | Charts | Prose | Facts | Items | Verbatim | Flames | Fold


class Section(msgspec.Struct, frozen=True):
    """A part of the report, with its heading. `detail`: not everybody reads it."""

    id: str
    title: str
    blocks: tuple[Block, ...]
    detail: bool = False


class Chip(msgspec.Struct, frozen=True):
    """How many there are of a word, next to the verdict."""

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


class Outcome(enum.StrEnum):
    """What a case means to somebody who waits for yes or no."""

    OK = "ok"
    SLOWER = "slower"
    FAILED = "failed"
    """Something was not built, booted or run."""
    UNKNOWN = "unknown"


class Case(msgspec.Struct, frozen=True):
    """What is known of one region, commit, patch or kernel. `name` stays the same from study to
    study; `verdict` says what was found, and `figures` what it is from, in lines.
    """

    name: str
    outcome: Outcome
    verdict: str
    figures: tuple[str, ...] = ()


class Suite(msgspec.Struct, frozen=True):
    """Cases that belong together: the regions of one kernel against another, say."""

    name: str
    cases: tuple[Case, ...]

    def count(self, *outcomes: Outcome) -> int:
        """Return how many cases have one of these outcomes."""
        return sum(case.outcome in outcomes for case in self.cases)


class Failure(msgspec.Struct, frozen=True):
    """What was not built, booted or run, and how its console ended."""

    text: str
    console: tuple[str, ...] = ()


class Made(msgspec.Struct, frozen=True):
    """What a report is of, and what made it.

    kind      the study's, as it is stored
    question  what was asked, as a sentence
    command   the command line, ready to be pasted
    version   that of the kdelta that made it
    started   when, in seconds since 1970
    id        by which the store knows it; empty before it is kept
    """

    kind: str
    question: str
    command: str
    version: str
    started: float
    id: str = ""

    @property
    def head(self) -> tuple[str, ...]:
        """Return the line that a report begins with: which one it is, and when it was made."""
        word = "run" if self.kind == "run" else "study"
        return (f"{word} {self.id}, {moment_text(self.started)} UTC",) if self.id else ()


class Document(msgspec.Struct, frozen=True):
    """A whole report.

    title        the answer in some words: a mail's subject
    heading      what was compared in some words, above a page; empty: the question is short enough
    answers      the verdicts
    facts        what was compared
    sections     the figures
    environment  the sections that come last: the machine, the runs, the command
    suites       what a CI reads
    notices      what is to be known before any answer
    """

    title: str
    made: Made
    answers: tuple[Answer, ...]
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    environment: tuple[Section, ...]
    suites: tuple[Suite, ...] = ()
    failures: tuple[Failure, ...] = ()
    notices: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    heading: str = ""

    @property
    def body(self) -> tuple[Section, ...]:
        """All sections in their order, those of notes and warnings too."""
        listed = tuple(
            Section(title.lower(), title, (Items(tuple(merged(texts))),), detail=True)
            for title, texts in (("Notes", self.notes), ("Warnings", self.warnings))
            if texts
        )
        return (*self.sections, *listed, *self.environment)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The report in short."""
        answers = (
            f"{one.about}: {text}" if one.about else text
            for one in self.answers
            for text in one.sentences
        )
        return (*self.notices, *answers)


def blocks(of: Iterable[Section | Fold]) -> Iterator[Block]:
    """Yield every block of these sections, those in folds too."""
    for one in of:
        for block in one.blocks:
            yield block
            if isinstance(block, Fold):
                yield from blocks([block])


def retitled(section: Section, titles: Mapping[str, str]) -> Section:
    """Return a section whose tables have other titles of columns, by the titles now."""
    found = tuple(_retitled(each, titles) for each in section.blocks)
    return msgspec.structs.replace(section, blocks=found)


def _retitled(block: Block, titles: Mapping[str, str]) -> Block:
    if isinstance(block, Fold):
        found = tuple(_retitled(each, titles) for each in block.blocks)
        return msgspec.structs.replace(block, blocks=found)
    return with_titles(block, titles) if isinstance(block, Table) else block


def with_titles(table: Table, titles: Mapping[str, str]) -> Table:
    """Return a table with other titles of columns, by the titles now."""
    columns = (
        msgspec.structs.replace(one, title=titles.get(one.title, one.title))
        for one in table.columns
    )
    return msgspec.structs.replace(table, columns=tuple(columns))
