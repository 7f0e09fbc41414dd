# SPDX-License-Identifier: GPL-2.0-or-later
"""Golden texts, so that a changed word shows in one to three files: golden/studies has one text of
each study, golden/forms one document with every kind of block in each form.

KDELTA_UPDATE_GOLDEN=1 writes them again; what then differs is for the commit to explain. Of a page
the goldens have what a reader sees, and not how it is marked up.
"""

import difflib
import html.parser
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from kdelta.report.document import Chart, Charts, Document, blocks
from kdelta.report.html.page import page_of
from kdelta.report.junit import junit_of
from kdelta.report.ktap import ktap_of
from kdelta.report.mail import mail_of
from kdelta.report.markdown import markdown_of
from kdelta.report.text import text_of
from kdelta.studies.forms import FORMS
from kdelta.studies.kinds import document_of
from tests.report.example_document import EVERYTHING
from tests.report.example_stored import EVERY, EXAMPLES

GOLDEN = Path(__file__).parent / "golden"

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


def charts_of(document: Document) -> list[Chart]:
    found: list[Chart] = []
    for block in blocks(document.body):
        found += [block] if isinstance(block, Chart) else []
        found += block.charts if isinstance(block, Charts) else ()
    return found


def outline(name: str) -> str:
    """A study as text, with what other forms show besides: title, chips, charts and cases."""
    document = document_of(EXAMPLES[name])
    lines = [f"title: {document.title}", f"heading: {document.heading}"]
    for answer in document.answers:
        chips = ", ".join(f"{chip.count} {chip.word} ({chip.tone})" for chip in answer.chips)
        lines.append(f"answer: {answer.about or '-'}: {answer.tone or '-'}: {chips}")
    lines += [
        f"chart: {chart.description} | {chart.caption} | {chart.unit}"
        for chart in charts_of(document)
    ]
    for suite in document.suites:
        lines.append(f"suite: {suite.name}")
        for case in suite.cases:
            lines.append(f"    {case.outcome}: {case.name}: {case.verdict}")
            lines += [f"        {figure}" for figure in case.figures]
    return "\n".join([*lines, "", text_of(document)])


def changed(before: str, after: str) -> str:
    """The lines that differ, or the later text if that is shorter."""
    found = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    lines = ["@@" if line.startswith("@@") else line for line in list(found)[2:]]
    return min("".join(f"{line}\n" for line in lines), after, key=len)


def golden_of(name: str) -> str:
    """The outline of a study, or how it differs from the nearest one before it of the same kind.
    Then how the text differs that its command printed.
    """
    stored = EXAMPLES[name]
    earlier = list(EXAMPLES)[: list(EXAMPLES).index(name)]
    alike = [outline(key) for key in earlier if EXAMPLES[key].kind == stored.kind]
    near = [changed(one, outline(name)) for one in alike]
    text = min([outline(name), *near], key=len)
    printed = changed(text_of(document_of(stored)), FORMS["text"].render(stored))
    return f"{text}---- as printed ----\n{printed}"


RENDERERS: Mapping[str, Callable[[Document], str]] = {
    "text": text_of,
    "mail": mail_of,
    "markdown": markdown_of,
    "ktap": ktap_of,
    "junit": junit_of,
    "html": lambda document: "\n".join(map(str.rstrip, Seen(page_of(document, "")).lines)) + "\n",
}


def must_be(file: Path, text: str) -> None:
    if os.environ.get("KDELTA_UPDATE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    assert text == file.read_text()


@EVERY
def test_study_is_as_it_was(name: str) -> None:
    must_be(GOLDEN / "studies" / f"{name.replace(' ', '-')}.txt", golden_of(name))


@pytest.mark.parametrize("form", RENDERERS)
def test_form_is_as_it_was(form: str) -> None:
    must_be(GOLDEN / "forms" / f"everything.{form}", RENDERERS[form](EVERYTHING))


def test_goldens_have_no_other_files() -> None:
    studies = {f"{name.replace(' ', '-')}.txt" for name in EXAMPLES}
    assert {file.name for file in (GOLDEN / "studies").iterdir()} == studies
    forms = {f"everything.{form}" for form in RENDERERS}
    assert {file.name for file in (GOLDEN / "forms").iterdir()} == forms
    assert {*RENDERERS, "json"} == set(FORMS)
