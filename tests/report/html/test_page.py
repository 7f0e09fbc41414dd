# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages as text: whole, closed, self-contained, with all that the studies know; and escaped."""

import base64
import functools
import hashlib
import html.parser
import json
import re
from fractions import Fraction

import msgspec
import pytest

from kdelta.report import figures
from kdelta.report.document import Cell, Charts, Fold, Table, blocks
from kdelta.report.html.page import script_json
from kdelta.spec.errors import LabError
from kdelta.studies.compare.answer import heading
from kdelta.studies.compare.functions import functions_table
from kdelta.studies.forms import html as page
from kdelta.studies.forms import text as first_screen_text
from kdelta.studies.kinds import STORED, document_of
from tests.report.example_cycles import with_cycles
from tests.report.html.pages import (
    EVERY,
    HOSTILE,
    comparison,
    example,
    hostile_comparison,
    hostile_flames,
    stored,
    two_flames,
)

EVERY_PAGE = pytest.mark.parametrize("name", EVERY)


@functools.cache
def html_of(name: str) -> str:
    return page(example(name))


_EMPTY = {"meta", "input", "br", "img", "link"}


class Read(html.parser.HTMLParser):
    """A page as a browser takes it apart. Raises AssertionError for tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        assert len(given) == len(attrs), f"{tag} says something twice"
        self.tags.append((tag, given))
        if "id" in given:
            self.ids.append(given["id"])
        if tag not in _EMPTY:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _EMPTY:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in {"script", "style"}:
            self.texts.append(data)

    @property
    def said(self) -> str:
        return " ".join(" ".join(self.texts).split())


@EVERY_PAGE
def test_a_page_is_whole(name: str) -> None:
    text = html_of(name)
    found = Read(text)
    assert len(set(found.ids)) == len(found.ids)
    for tag, given in found.tags:
        for label in ("aria-labelledby", "aria-controls"):
            assert set(given.get(label, "").split()) <= set(found.ids), (tag, given)
        if "href" in given:
            assert given["href"].startswith("#")
            assert given["href"][1:] in found.ids, given["href"]
    # Further titles are those of rows of charts, which show them as tips.
    tags = [tag for tag, _ in found.tags if tag in {"h1", "main", "title"}]
    assert tags[:3] == ["title", "h1", "main"]
    assert set(tags[3:]) <= {"title"}
    assert tags[3:].count("title") <= sum(tag == "g" for tag, _ in found.tags)
    assert ("html", {"lang": "en"}) in found.tags


@EVERY_PAGE
def test_a_page_needs_nothing_but_itself(name: str) -> None:
    text = html_of(name)
    found = Read(text)
    for tag, given in found.tags:
        assert tag not in {"link", "iframe", "object", "embed", "base", "img", "form"}
        assert not {"src", "srcset", "action", "data", "style"} & given.keys(), (tag, given)
        assert not [name for name in given if name.startswith("on")]
    style = text[text.index("<style>") : text.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


@EVERY_PAGE
def test_the_policy_allows_what_the_page_has_and_nothing_else(name: str) -> None:
    text = html_of(name)
    policy = next(
        given["content"]
        for tag, given in Read(text).tags
        if given.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        for inside in re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL):
            digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy


def test_every_kind_has_a_page() -> None:
    assert {example(name).kind for name in EVERY} == {*STORED, "processes", "profile"}


@EVERY_PAGE
def test_a_page_says_what_was_asked_and_how_to_ask_again(name: str) -> None:
    text = html_of(name)
    found = Read(text)
    assert "kdelta 0.1.0" in found.said
    assert re.search(r"kdelta \w+ one other", found.said)


def test_a_comparison_tells_both_verdicts_first() -> None:
    said = Read(html_of("compare")).said
    path, cycles = said.index("2 slower, 1 faster"), said.index("Model cycles")
    assert path < said.index("deb:linux-image-6.12.57") or "Is deb:" in said[:200]
    assert cycles > 0
    assert "1 mixed, 2 changed by less than 0.5%, 1 same, 1 unresolved" in said
    assert "model cycles on zen3" in said
    assert "other, perturbation 3: workload-failed: signal 11 SIGSEGV" in said


def test_an_ensemble_is_drawn_where_layouts_differ_with_what_was_shipped() -> None:
    found = Read(html_of("compare"))
    drawn = [given["aria-label"] for tag, given in found.tags if given.get("role") == "img"]
    of_it = [text for text in drawn if text.startswith("open-close, L1I misses")]
    assert len(of_it) == 1
    assert re.search(r"base [\d.]+ to [\d.]+, mean [\d.]+, as linked 43.60 \(above \d+ %", of_it[0])
    assert "Every layout costs the same in: getppid, clock_gettime-vdso." in found.said


def test_a_page_has_a_short_title() -> None:
    for name, on in (("compare", " on zen3"), ("gate", "")):
        text = html_of(name)
        assert f"<h1>6.12.57 against 6.1.0: syscalls{on}</h1>" in text
        assert f"<title>kdelta: 6.12.57 against 6.1.0: syscalls{on}</title>" in text


@pytest.mark.parametrize(
    ("specs", "expected"),
    [
        (
            ("tree:/src/linux", "tree:/src/linux +fix.patch"),
            "/src/linux with fix.patch against /src/linux without",
        ),
        (("image:/a/vmlinuz", "image:/b/vmlinuz"), "/b/vmlinuz against /a/vmlinuz"),
    ],
)
def test_kernels_of_one_version_are_named_by_what_distinguishes_them(
    specs: tuple[str, str], expected: str
) -> None:
    plain = with_cycles()
    base, side = (
        msgspec.structs.replace(one, spec=spec, release="6.12.1")
        for one, spec in zip((plain.base, plain.others[0].side), specs, strict=True)
    )
    others = (msgspec.structs.replace(plain.others[0], side=side),)
    renamed = msgspec.structs.replace(plain, base=base, others=others)
    assert heading([renamed]).startswith(f"{expected}: syscalls")


def test_rows_have_one_order_in_charts_tables_and_the_terminal() -> None:
    found = document_of(example("compare-path"))
    every = list(blocks(found.body))
    (chart,) = next(one.charts for one in every if isinstance(one, Charts))
    tables = {one.id: one for one in every if isinstance(one, Table)}
    rows = [row[0].text for row in (*tables["ops-1-1"].rows, *tables["same-1-1"].rows)]
    charted = [row.name for row in chart.rows]
    assert charted == [name for name in rows if name in charted]
    folds = [one.summary.split(":")[0] for one in every
             if isinstance(one, Fold) and one.id.startswith("functions-of")]  # fmt: skip
    assert [name for name in folds if name in rows] == [name for name in rows if name in folds]
    screen = first_screen_text(example("compare-path")).partition("\n\n")[2]
    at = [column.title for column in tables["ops-1-1"].columns].index("%")
    # Changes of less than 0.5 % come last on a first screen.
    large = {row[0].text for row in tables["ops-1-1"].rows if abs(row[at].sort or 0) >= 0.5}
    listed = [name for name in rows if name in large and f"\n{name} " in screen]
    assert listed == ["clock_gettime-vdso", "open-close", "read-zero-64k", "page-fault"]
    assert listed == sorted(listed, key=lambda name: screen.index(f"\n{name} "))


def test_what_others_did_is_no_finding() -> None:
    every = blocks(document_of(example("compare")).body)
    (table,) = (one for one in every if isinstance(one, Table) and one.id == "background-1-1")
    assert {row[1].text for row in table.rows} & {"slower", "faster"}
    assert {row[1].tone for row in table.rows} == {"same"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "compare",
            ("How the configs differ", "2 options have another", "CONFIG_RUST n y switched on"),
        ),
        ("ablate", ("no executed code depends on it", "How the configs differ", "Ruled out")),
        ("bisect", ("Ruled out, and why", "Commits that did it")),
        ("series", ("Ruled out, and why", "Patches and what they do")),
        ("series-minimal", ("The smallest set",)),
        ("gate", ("Yes, it is slower. Exit code 1.", "What decided it", "Operations")),
        ("layout", ("depend by more than 1 %", "with itself", "in no layout")),
        ("place", ("Who pays for it", "annealed")),
        ("compare-packets", ("Instructions a packet", "packets/s", "No driver of a network card")),
        ("profile", ("instructions in 2 regions", "Whose work, and whose code")),
        ("run", ("instructions in 9 regions", "Functions")),
        ("run-failed", ("boot-failed: no init", "Kernel panic - not syncing")),
        ("compare-cpus", ("model cycles on zen3", "model cycles on zen4")),
    ],
)
def test_what_a_study_found_is_reported(name: str, expected: tuple[str, ...]) -> None:
    said = Read(html_of(name)).said.lower()
    for text in expected:
        assert text.lower() in said


def hundredths(cell: Cell) -> int:
    return round(Fraction(cell.text) * 100)


@pytest.mark.parametrize("name", ["compare", "ablate", "series"])
def test_rows_add_up_to_their_total_as_shown(name: str) -> None:
    checked = 0
    for table in blocks(document_of(example(name)).sections):
        if not isinstance(table, Table) or not table.total:
            continue
        at = next((at for at, one in enumerate(table.columns) if one.title == "diff"), None)
        if at is None:
            continue
        assert sum(hundredths(row[at]) for row in table.rows) == hundredths(table.total[at])
        checked += 1
    assert checked > 1


def test_functions_that_do_not_add_up_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "rounded_to_total", lambda values, *_: [7] * len(values))
    operations = with_cycles().others[0].effects.operations
    one = next(one for one in operations if one.costs and one.functions)
    assert one.costs
    with pytest.raises(LabError, match="add up"):
        functions_table("x", one.name, one.costs.insns, one.functions)


def test_no_operation_in_common_is_reported() -> None:
    plain = with_cycles()
    other = plain.others[0]
    alone = tuple(one for one in other.effects.operations if one.costs is None)
    assert alone
    effects = msgspec.structs.replace(other.effects, operations=alone, background=())
    others = (msgspec.structs.replace(other, effects=effects, measured=()),)
    said = Read(page(stored("compare", msgspec.structs.replace(plain, others=others)))).said
    assert "no operation succeeded on both sides" in said


@pytest.mark.parametrize("name", HOSTILE)
def test_a_script_element_ends_where_it_should(name: str) -> None:
    text = script_json({"name": name})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {"name": name}


def test_names_are_text_wherever_they_stand() -> None:
    whole = page(hostile_comparison(), hostile_flames())
    found = Read(whole)
    plain = Read(page(comparison(), two_flames()))
    tags = {tag for tag, _ in plain.tags}
    assert {tag for tag, _ in found.tags} <= tags
    assert len([tag for tag, _ in found.tags if tag == "script"]) == 4
    attributes = {name for _, given in plain.tags for name in given}
    assert {name for _, given in found.tags for name in given} <= attributes
    for name in HOSTILE:
        assert " ".join(name.split()) in found.said
