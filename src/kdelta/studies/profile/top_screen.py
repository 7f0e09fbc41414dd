# SPDX-License-Identifier: GPL-2.0-or-later
"""A list of functions as a terminal's screen, and as a table where there is none."""

from enum import Enum
from fractions import Fraction

import msgspec

from kdelta.report import figures
from kdelta.report.lines import ascii_only, finished
from kdelta.studies.profile.top import Functions, Top, TopLine, Way, listed, ranked

LEAST_COLUMNS = 50
LEAST_LINES = 8

_FIGURE = 14
_PERCENT = 7
_CALLS = 9
_TITLES = (
    f"{'inclusive':>{_FIGURE}}{'%':>{_PERCENT}}{'own':>{_FIGURE}}{'%':>{_PERCENT}}"
    f"{'calls':>{_CALLS}}  "
)
_OVERHEAD = 3  # lines that are no functions: two above, one below

_KEYS = "?:help  /:filter  Enter:open  u:callers  i,o,c,n:sort  m:figure  r:region  w:whose  q:quit"
_HELP = (
    "up, down, j, k, page keys, Home, End   move",
    "Enter, right, +     open a function: what it called, or with u who called it",
    "left, -, Backspace  close it, or go to the one above",
    "u                   callers instead of callees of the function, and back",
    "i o c n             sort by inclusive, own, calls, name; < and > the one next to it",
    "/                   type a part of names, Enter to keep it, Esc to show all",
    "m M                 another figure: loads, stores, ...",
    "r R                 another region, or all of them",
    "w                   whose work: own, interrupts, other tasks, all",
    "q                   quit",
    "",
    "inclusive: with all that was called below it, what calls itself counted once.",
    "Of a function below another: only what was done on that path.",
)


class Style(Enum):
    """How a line of the screen stands out."""

    PLAIN = "plain"
    HEAD = "head"
    CURSOR = "cursor"


class ScreenRow(msgspec.Struct, frozen=True):
    """A line of the screen, as wide as it is at most."""

    text: str
    style: Style = Style.PLAIN


def screen(top: Top, title: str, columns: int, lines: int) -> list[ScreenRow]:
    """The screen of that size: so many rows at most. One that is too small says only so."""
    if columns < LEAST_COLUMNS or lines < LEAST_LINES:
        return [ScreenRow(f"needs {LEAST_COLUMNS}x{LEAST_LINES}"[:columns])][:lines]
    rows = [ScreenRow(_cut(_state(top, title), columns), Style.HEAD)]
    page = page_of(lines)
    if top.state.helping:
        rows += [ScreenRow(_cut(text, columns)) for text in ("", *_HELP)][: page + 1]
    else:
        rows.append(ScreenRow(_cut(_head(top.state.way), columns), Style.HEAD))
        cursor = top.cursor
        # Pages do not overlap, so that the eye finds its place.
        first = cursor - cursor % page
        for index, line in enumerate(top.lines[first : first + page], first):
            style = Style.CURSOR if index == cursor else Style.PLAIN
            text = _cut(_line(line, top.functions.total), columns)
            rows.append(ScreenRow(f"{text:<{columns}}" if style is Style.CURSOR else text, style))
        if not top.lines:
            known = f"no function's name has {top.state.words!r}; Esc shows all"
            nothing = known if top.state.words else "nothing was executed here"
            rows.append(ScreenRow(_cut(nothing, columns)))
    rows += [ScreenRow("")] * (lines - 1 - len(rows))
    return [*rows, ScreenRow(_cut(_foot(top), columns), Style.HEAD)]


def page_of(lines: int) -> int:
    """How many functions a screen of that many lines shows."""
    return max(1, lines - _OVERHEAD)


def table(functions: Functions, title: str, n: int) -> str:
    """The first n functions by inclusive figure as text, with the total as the last line."""
    lines = ranked(listed(functions, Way.CALLEES, "inclusive", frozenset()), "inclusive")
    rows = [
        _cells(line.inclusive, line.own, line.calls, functions.total) + line.name
        for line in lines[:n]
    ]
    texts = [title, "", _TITLES + "function", *rows]
    if len(lines) > n:
        own = sum(line.own or 0 for line in lines[n:])
        texts.append(_cells(None, own, None, functions.total) + f"{len(lines) - n} more functions")
    texts.append(_cells(functions.total, functions.total, None, functions.total) + "total")
    return finished(texts)


def _state(top: Top, title: str) -> str:
    choice, state = top.state.choice, top.state
    words = f"  filter: {state.words}" if state.words and not state.typing else ""
    return (
        f"{choice.region}, {choice.whose} work: {top.functions.total} {choice.column}"
        f"  by {state.order}{words}  {title}"
    )


def _head(way: Way) -> str:
    of = "opened to what it called" if way is Way.CALLEES else "opened to who called it"
    return f"{_TITLES}function, {of}"


def _line(line: TopLine, total: int) -> str:
    mark = ("-" if line.is_open else "+") if line.openable else " "
    depth = "  " * (len(line.path) - 1)
    return _cells(line.inclusive, line.own, line.calls, total) + f"{depth}{mark} {line.name}"


def _cells(inclusive: int | None, own: int | None, calls: int | None, total: int) -> str:
    """The figures of a line, up to where its name begins."""
    cells = ""
    for figure in (inclusive, own):
        text = "" if figure is None else str(figure)
        part = "" if figure is None or not total else f"{100 * figure / total:.1f}%"
        cells += f"{text:>{_FIGURE}}{part:>{_PERCENT}}"
    times = "" if calls is None else figures.short(Fraction(calls)) if calls else "-"
    return f"{cells}{times:>{_CALLS}}  "


def _foot(top: Top) -> str:
    if top.state.typing:
        return f"filter: {top.state.words}_  (Enter: keep, Esc: show all)"
    return "any key: back" if top.state.helping else _KEYS


def _cut(text: str, columns: int) -> str:
    text = ascii_only(text.replace("\n", " "))
    return text if len(text) <= columns else text[: columns - 1] + ">"
