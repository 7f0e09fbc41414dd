# SPDX-License-Identifier: GPL-2.0-or-later
"""Every form of every kind of study as it was when it was last looked at: golden/forms has them.

KDELTA_UPDATE_GOLDEN=1 writes them again; what then differs is for the commit to explain. Of a page
the goldens have what a reader sees, and not how it is marked up.
"""

import html.parser
import os
from pathlib import Path

import pytest

from kdelta.studies.forms import FORMS
from tests.report.example_stored import EVERY, EXAMPLES

GOLDEN = Path(__file__).parent / "golden" / "forms"
SHOWN = [form for form in FORMS if form != "json"]

_LINES = {"p": "", "h1": "# ", "h2": "## ", "li": "- ", "summary": "> ", "caption": "table: "}
_LINES |= {"dt": "", "tr": "", "figcaption": "chart: ", "pre": ""}
_CELLS = {"td", "th", "dd"}
_EMPTY = {"meta", "input", "br", "img", "link"}
_UNSEEN = {"style", "script", "svg", "nav", "title"}


class Seen(html.parser.HTMLParser):
    """The lines that a reader of a page sees, those of charts as they are described; the report as
    text is left out, which has a golden of its own.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._open: list[tuple[str, bool]] = []
        self.feed(text)
        self.close()

    @property
    def _hidden(self) -> bool:
        return any(hides for _, hides in self._open)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        is_chart = given.get("role") == "img"
        if is_chart and not self._hidden:
            self.lines.append(f"chart: {given['aria-label']}")
        if tag not in _EMPTY:
            hides = tag in _UNSEEN or (tag == "section" and given.get("id") == "text")
            self._open.append((tag, hides or is_chart))
        if self._hidden:
            return
        if tag in _LINES:
            self.lines.append(_LINES[tag])
        elif tag in _CELLS and self.lines:
            self.lines[-1] += " | " if self.lines[-1] else ""

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        if not self._hidden and self.lines and data.strip():
            inside = any(tag == "pre" for tag, _ in self._open)
            apart = " " if data[0].isspace() and self.lines[-1] else ""
            self.lines[-1] += data if inside else apart + " ".join(data.split())


def shown(form: str, name: str) -> str:
    text = FORMS[form].render(EXAMPLES[name])
    return "\n".join(map(str.rstrip, Seen(text).lines)) + "\n" if form == "html" else text


@EVERY
@pytest.mark.parametrize("form", SHOWN)
def test_form_of_study_is_as_it_was(form: str, name: str) -> None:
    file = GOLDEN / f"{name.replace(' ', '-')}.{form}"
    text = shown(form, name)
    if os.environ.get("KDELTA_UPDATE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    assert text == file.read_text()
