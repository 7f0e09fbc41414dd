# SPDX-License-Identifier: GPL-2.0-or-later
"""The man pages: one for each command, with all that its help has, and without a fault in it."""

import re
import subprocess
from pathlib import Path

import pytest

from scripts.man_pages import _plain, _text, environment, pages
from tests.docs.commands import COMMANDS

PAGES = pages()
SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"]
ENDS = ["EXIT STATUS", "ENVIRONMENT", "FILES", "SEE ALSO"]


def test_kdelta_and_every_command_have_a_page() -> None:
    assert set(PAGES) == {"kdelta.1", *(f"kdelta-{name}.1" for name in COMMANDS)}


@pytest.mark.parametrize("name", PAGES)
def test_sections_and_references_of_a_page(name: str) -> None:
    page = PAGES[name]
    between = ["COMMANDS"] if name == "kdelta.1" else []
    sections = re.findall(r"^\.SH (.*)$", page, re.MULTILINE)
    assert sections == [*SECTIONS[:3], *between, SECTIONS[3], *ENDS]
    others = re.findall(r"^\.BR (\S+) \(1\)", page.replace(r"\-", "-"), re.MULTILINE)
    assert others
    assert {f"{one}.1" for one in others} <= set(PAGES)
    assert page.isascii()


@pytest.mark.parametrize("name", COMMANDS)
def test_options_and_exit_codes_of_a_command(name: str) -> None:
    page = PAGES[f"kdelta-{name}.1"].replace(r"\-", "-")
    for param in COMMANDS[name].params:
        if param.opts[0].startswith("-"):
            assert re.search(rf"^\.B .*{re.escape(param.opts[-1])}\b", page, re.MULTILINE)
    codes = page.partition(".SH EXIT STATUS")[2].partition(".SH")[0]
    wanted = {"gate": ["125", "255"], "run": ["130", "125", "255"]}.get(name, ["130"])
    assert all(re.search(rf"\b{code}\b", codes) for code in wanted)
    assert not re.search(r"[.:]:", codes)


def test_what_begins_like_a_request_is_none() -> None:
    assert [_text(".config is"), _text("'a'"), _plain(".x -y")] == [
        r"\&.config is",
        r"\&'a'",
        r"\&.x \-y",
    ]


def test_the_environment_is_that_of_its_page() -> None:
    names = [name for name, _ in environment()]
    assert {"KDELTA_CACHE_DIR", "KDELTA_DEFAULTS", "NO_COLOR"} <= set(names)
    assert all(f".B {name}\n" in page for name in names for page in PAGES.values())


@pytest.mark.outside
@pytest.mark.parametrize("name", PAGES)
def test_groff_has_no_warning(name: str) -> None:
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-P-cbou"],
        input=PAGES[name], capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    assert "SEE ALSO" in done.stdout


@pytest.mark.outside
def test_whatis_finds_every_page(tmp_path: Path) -> None:
    for name, text in PAGES.items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        ["lexgrog", *sorted(tmp_path.iterdir())], capture_output=True, text=True, check=True
    )
    assert done.stdout.count(': "kdelta') == len(PAGES)
