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
    Chart,
    ColumnKind,
    Document,
    Flames,
    Fold,
    Section,
    Verbatim,
    blocks,
)
from kdelta.report.flame import flame_data
from kdelta.report.html.charts import chart_svg

_PACKAGE = "kdelta.report.html"
_SCRIPTS = ("page.js", "table.js", "flame.js")
_STYLE = "page.css"
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
    style = _static(_STYLE)
    scripts = [_static(name) for name in _SCRIPTS]
    template = _environment().get_template("page.html.j2")
    return template.render(
        document=found,
        sections=(*found.body, _text_section(as_text)),
        style=Markup(style),
        scripts=[Markup(script) for script in scripts],
        policy=_policy(style, scripts),
        data=Markup(script_json(flame_data(graphs))) if graphs else "",
    )


def script_json(thing: object) -> str:
    """JSON that may stand in a script element, whatever strings are in it."""
    text = msgspec.json.encode(thing).decode()
    return "".join(_IN_SCRIPTS.get(char, char) for char in text)


def _text_section(text: str) -> Section:
    """The report that can be pasted."""
    fold = Fold("The report as a terminal shows it", (Verbatim(text),))
    return Section("text", "The same as text", (fold,))


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
    found.filters["drawn"] = _drawn
    found.filters["shown"] = shown
    found.filters["sortable"] = _sortable
    found.filters["anchor"] = _anchor
    return found


def shown(cell: Cell, kind: ColumnKind) -> str:
    """A cell's text: of figures with digits in groups, and the signs of print."""
    if kind != "number":
        return cell.text
    text = _DIGITS.sub(lambda found: f"{int(found[0]):,}".replace(",", THIN), cell.text)
    text = text.replace("+-", PLUS_MINUS)
    return _PERCENT.sub(f"{THIN}%", _MINUS.sub(MINUS, text))


def _drawn(chart: Chart) -> Markup:
    # The SVG is ours, its texts escaped by Vega.
    return Markup(chart_svg(chart))


def _anchor(text: str) -> str:
    """An id that links and labels can refer to: without spaces, another for each text."""
    return _NOT_IN_IDS.sub(lambda found: f":{ord(found[0]):x}:", text)


def _sortable(value: float) -> str:
    """A figure as a script reads it."""
    return repr(max(-_MOST, min(_MOST, value)))
