# SPDX-License-Identifier: GPL-2.0-or-later
"""A report as one HTML file that opens offline: nothing is fetched, nothing else is run.

The page may only use the style and the scripts that it was made with: its Content-Security-Policy
has their hashes. Texts are escaped by Jinja2, data for scripts by `script_json`.
"""

import base64
import functools
import hashlib
import re
from collections.abc import Sequence
from importlib import resources

import jinja2
import msgspec
from markupsafe import Markup

from kdelta.report.document import (
    Cell,
    ColumnKind,
    Document,
    Flames,
    Fold,
    Section,
    Table,
    Verbatim,
    blocks,
)
from kdelta.report.flame import flame_data
from kdelta.report.html.charts import plot_of

_PACKAGE = "kdelta.report.html"
_SCRIPTS = ("page.js", "table.js", "flame.js")
_MOST = 1e300
MINUS = "\N{MINUS SIGN}"
THIN = "\N{NARROW NO-BREAK SPACE}"
PLUS_MINUS = "\N{PLUS-MINUS SIGN}"
_DIGITS = re.compile(r"(?<![\d.])[1-9]\d{3,}")
_MINUS = re.compile(r"(?<!e)-(?=\d)")
_PERCENT = re.compile(r"(?<=\d) ?%")
_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9._-]")

# A data block is left by "</script", and "<!--" changes where it ends (HTML, 4.12.1.3); the two
# separators end a line of older JavaScript. None of them occurs outside of JSON's strings.
_IN_SCRIPTS = {char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def page_of(found: Document, as_text: str) -> str:
    """A document as HTML, with the report as text at its end."""
    graphs = [
        flame
        for block in blocks(found.sections)
        if isinstance(block, Flames)
        for flame in block.flames
    ]
    style = _static("page.css")
    scripts = [_static(name) for name in _SCRIPTS]
    to_paste = Fold("The report as a terminal shows it", (Verbatim(as_text),))
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            document=found,
            sections=(*found.body, Section("text", "The same as text", (to_paste,))),
            style=Markup(style),
            scripts=[Markup(script) for script in scripts],
            policy=_policy(style, scripts),
            data=Markup(script_json(flame_data(graphs))) if graphs else "",
        )
    )


def script_json(thing: object) -> str:
    """JSON that may stand in a script element, whatever strings are in it."""
    return "".join(_IN_SCRIPTS.get(char, char) for char in msgspec.json.encode(thing).decode())


def _policy(style: str, scripts: Sequence[str]) -> str:
    hashes = " ".join(_hash(script) for script in scripts)
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {hashes}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _static(name: str) -> str:
    return resources.files(_PACKAGE).joinpath("static", name).read_text("utf-8")


@functools.cache
def _environment() -> jinja2.Environment:
    found = jinja2.Environment(
        loader=jinja2.PackageLoader(_PACKAGE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "plotted": plot_of,
        "for_narrow": for_narrow,
        "print": printed,
        "shown": shown,
        "sortable": _sortable,
        "anchor": _anchor,
    }
    return found


def shown(cell: Cell, kind: ColumnKind) -> str:
    """A cell's text, of figures as they are printed."""
    return printed(cell.text) if kind == "number" else cell.text


def for_narrow(table: Table) -> Table:
    """A table whose column of per cent stands next to the names and verdicts, so that a phone shows
    it, too.
    """
    titles = [column.title for column in table.columns]
    first = next((at for at, one in enumerate(table.columns) if one.kind == "number"), 0)
    percent = titles.index("%") if "%" in titles else 0
    if percent <= first + 1:
        return table
    order = [*range(first), percent, *(at for at in range(first, len(titles)) if at != percent)]

    def ordered(rows: tuple[tuple[Cell, ...], ...]) -> tuple[tuple[Cell, ...], ...]:
        return tuple(tuple(row[at] for at in order) for row in rows)

    return msgspec.structs.replace(
        table,
        columns=tuple(table.columns[at] for at in order),
        rows=ordered(table.rows),
        total=ordered((table.total,))[0] if table.total else (),
        foot=ordered(table.foot),
    )


def printed(text: str) -> str:
    """A figure with digits in groups, and the signs of print."""
    text = _DIGITS.sub(lambda found: f"{int(found[0]):,}".replace(",", THIN), text)
    text = text.replace("+-", PLUS_MINUS)
    return _PERCENT.sub(f"{THIN}%", _MINUS.sub(MINUS, text))


def _anchor(text: str) -> str:
    """An id that links and labels can refer to: without spaces, another for each text."""
    return _NOT_IN_IDS.sub(lambda found: f":{ord(found[0]):x}:", text)


def _sortable(value: float) -> str:
    """A figure as a script reads it."""
    return repr(max(-_MOST, min(_MOST, value)))
