# SPDX-License-Identifier: GPL-2.0-or-later
"""A report as Markdown, rendered: what a reader sees is what it says."""

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kdelta.report.document import Table, blocks
from kdelta.report.markdown import LIMIT, escaped, inline
from kdelta.studies.forms import FORMS
from kdelta.studies.kinds import document_of
from tests.report.example import report
from tests.report.example_stored import EVERY, EXAMPLES, NASTY, nasty
from tests.report.shown import stored

markdown = FORMS["markdown"].render

RENDERER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def tables_of(html: str) -> list[list[list[str]]]:
    """The cells of all tables of a page, as text."""
    found = []
    for table in re.findall(r"<table>.*?</table>", html, re.DOTALL):
        rows = re.findall(r"<tr>.*?</tr>", table, re.DOTALL)
        found.append(
            [
                [plain(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)]
                for row in rows
            ]
        )
    return found


def plain(html: str) -> str:
    """What a reader sees."""
    text = re.sub(r"<!--.*?-->|</?(?:code|strong|em|p|li|ul|h3|s)[^>]*>", "", html, flags=re.DOTALL)
    assert "<" not in text, text
    for entity, char in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        text = text.replace(entity, char)
    return text


@EVERY
def test_markdowns_tables_are_the_documents(name: str) -> None:
    wanted = [one for one in blocks(document_of(EXAMPLES[name]).body) if isinstance(one, Table)]
    html = RENDERER.render(markdown(EXAMPLES[name]))
    assert tables_of(html) == [
        [
            [column.title for column in table.columns],
            *([cell.text for cell in row] for row in (*table.rows, *table.last)),
        ]
        for table in wanted
    ]
    assert html.count("<details>") == html.count("</details>") >= 1


def test_details_are_folded() -> None:
    text = markdown(EXAMPLES["compare cycles"])
    assert text.startswith("### syscalls: 2 slower, 1 faster, 1 mixed, 2 changed by less than")
    seen = re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL)
    assert "| `read-zero-64k` | mixed | 99 | 1300 | +1201 | +1213% | exact |" in seen
    assert "read_iter_zero" not in seen
    # Not decided in its path, and the same in its model cycles.
    assert "| `page-fault` | unresolved |" in seen
    assert "`read_iter_zero`" in text
    assert "kdelta compare 'a b' c" in text.rpartition("<details>")[2]


def test_what_is_the_same_is_folded() -> None:
    text = markdown(EXAMPLES["compare"])
    seen = re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL)
    assert "`open-close`" in seen
    assert "`uname`" not in seen
    assert "| `uname` | same |" in text


def test_nasty_names_in_markdown() -> None:
    html = RENDERER.render(markdown(nasty()))
    assert "<script" not in html
    assert "alert(1)" in html
    visible = re.sub(r"\s", " ", f"getppid {NASTY}".replace("\x1b", r"\x1b"))
    cells = [cell for table in tables_of(html) for row in table for cell in row]
    names = [re.sub(r"\s|\\n", " ", cell) for cell in cells]
    assert visible in names
    assert {len(row) for row in tables_of(html)[0]} == {8}
    # No user is mentioned and no issue linked by what was rendered.
    assert not re.search(
        r"[@#](?=\w)", re.sub(r"<code>.*?</code>|<pre>.*?</pre>", "", html, flags=re.DOTALL)
    )


ANY_LINE = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp"), exclude_characters="\u00a0"),
    max_size=40,
).map(lambda text: " ".join(text.split()))
SIGNS = st.text(st.sampled_from("ab1 .`*_[]()<>#+-=!|~$&\\@:;\"'/{}"), max_size=30).map(
    lambda text: " ".join(text.split())
)


@given(ANY_LINE | SIGNS)
def test_whatever_is_escaped_reads_as_it_is(text: str) -> None:
    visible = re.sub("[\u202a-\u202e\u2066-\u2069]", lambda found: ascii(found[0])[1:-1], text)
    assert plain(RENDERER.render(escaped(text))).rstrip("\n") == visible
    table = f"| a |\n| --- |\n| {inline(text)} |\n"
    assert tables_of(RENDERER.render(table)) == [[["a"], [visible]]]


@pytest.mark.slow
def test_a_comment_has_a_limit() -> None:
    whole = report()
    many = tuple(msgspec.structs.replace(whole.others[0]) for _ in range(60))
    text = markdown(stored("compare", msgspec.structs.replace(whole, others=many)))
    details = text.count("<details>")
    assert "more parts are too long for a comment" in text
    assert details < 60
    short = markdown(EXAMPLES["compare"])
    assert len(short) < LIMIT
    assert "too long" not in short
