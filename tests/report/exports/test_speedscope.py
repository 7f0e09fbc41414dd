# SPDX-License-Identifier: GPL-2.0-or-later
"""speedscope's format by its own JSON schema, and as speedscope itself opens it in a browser."""

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import msgspec
import pytest
from playwright.sync_api import Page

from kdelta.report.exports.model import clean
from tests.profiles import profile_of
from tests.report.exports.example import (
    NAMING,
    ODD,
    OTHER,
    READ,
    example,
    inclusive,
    made,
    own,
    tool,
)
from tests.report.html.browser import chromium

READ_OWN = {stack: insns for stack, insns in READ.items() if stack[0] != "irq_entry"}
_ROW = re.compile(r"^([\d,]+) \([^)]*\)\s+([\d,]+) \([^)]*\)\s+(.+)$", re.MULTILINE)


@pytest.fixture
def page() -> Iterator[Page]:
    """speedscope's page, from its package, waiting for a file."""
    index = tool("speedscope/dist/release/index.html")
    with chromium() as browser:
        page = browser.new_page()
        # Told of a file to come, it has a function that takes one.
        page.goto(f"{index.as_uri()}#localProfilePath=none")
        page.wait_for_function("window.speedscope !== undefined")
        yield page


def opened(page: Page, file: Path) -> dict[str, tuple[int, int]]:
    """Opens a file; total and own figures by function in the first profile."""
    content = base64.b64encode(file.read_bytes()).decode()
    page.evaluate(
        "([name, data]) => speedscope.loadFileFromBase64(name, data)", [file.name, content]
    )
    page.get_by_text("Sandwich").click()
    page.get_by_text("Symbol Name").wait_for()
    rows = _ROW.findall(page.inner_text("body"))
    number = {
        row: (int(total.replace(",", "")), int(self.replace(",", ""))) for total, self, row in rows
    }
    assert number, page.inner_text("body")
    return number


@pytest.mark.outside
def test_it_is_of_speedscopes_schema(tmp_path: Path) -> None:
    schema = json.loads(tool("speedscope/dist/release/file-format-schema.json").read_text())
    document = json.loads(made("speedscope", tmp_path, example()).read_text())
    jsonschema.validate(document, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**document, "profiles": [{"type": "evented"}]}, schema)


def test_each_region_and_context_is_a_profile(tmp_path: Path) -> None:
    document = json.loads(made("speedscope", tmp_path, example()).read_text())
    told = {profile["name"]: profile["endValue"] for profile in document["profiles"]}
    assert told == {
        "read, own": sum(READ_OWN.values()),
        "read, interrupts": 110,
        "read (x); <b>&amp; [1m, own": sum(OTHER.values()),
    }


def test_what_cost_most_comes_first(tmp_path: Path) -> None:
    profile = profile_of({("a",): 1, ("a", "b"): 2, ("a", "c"): 5, ("a", "d"): 3, ("a", "e"): 0})
    document = json.loads(made("speedscope", tmp_path, [profile]).read_text())
    names = [frame["name"] for frame in document["shared"]["frames"]]
    events = document["profiles"][0]["events"]
    opened = [(names[e["frame"]], e["at"]) for e in events if e["type"] == "O"]
    assert opened == [("work", 0), ("a", 0), ("c", 1), ("d", 6), ("b", 9)]


@pytest.mark.outside
def test_speedscope_shows_own_and_inclusive_figures(tmp_path: Path, page: Page) -> None:
    found = opened(page, made("speedscope", tmp_path, example()))
    total, self = inclusive([READ_OWN]), own([READ_OWN])
    assert found["vfs_read"] == (total["vfs_read"], self["vfs_read"])
    assert found["walk"] == (total["walk"], self["walk"])
    assert found["hook [nf nat]"] == (total["[nf nat]:hook"], self["[nf nat]:hook"])
    assert found[clean(ODD)] == (7, 7)
    assert found["work"] == (sum(READ_OWN.values()), 0)
    assert page.title().startswith("syscalls on deb:linux-image: instructions")


def test_a_column_of_bytes_has_that_unit(tmp_path: Path) -> None:
    naming = msgspec.structs.replace(NAMING, column="string-bytes")
    document = json.loads(made("speedscope", tmp_path, example(), naming).read_text())
    assert {profile["unit"] for profile in document["profiles"]} == {"bytes"}


@pytest.mark.outside
def test_speedscope_opens_the_folded_form_and_pprofs_as_well(tmp_path: Path, page: Page) -> None:
    both = inclusive([READ, OTHER])["do_syscall_64"], own([READ, OTHER])["do_syscall_64"]
    assert opened(page, made("folded", tmp_path, example()))["do_syscall_64"] == both


@pytest.mark.outside
def test_speedscope_opens_pprofs(tmp_path: Path, page: Page) -> None:
    both = inclusive([READ, OTHER])["do_syscall_64"], own([READ, OTHER])["do_syscall_64"]
    assert opened(page, made("pprof", tmp_path, example()))["do_syscall_64"] == both
