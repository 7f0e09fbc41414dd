# SPDX-License-Identifier: GPL-2.0-or-later
"""Examples in the documentation: commands and options exist, and shown output is printed."""

import doctest
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdelta.cli import removed
from scripts.docs_pages import kdelta
from tests.docs.commands import COMMANDS

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
EVERY = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
EVERYWHERE = {"--help", "-h", "--version"}

COMMAND = re.compile(
    r"^(?: {4,}|\$ | {4,}\$ )(?:git bisect run )?kdelta ([a-z]+\b(?:\\\n|.)*)", re.MULTILINE
)
INLINE = re.compile(r"`kdelta ([a-z]+\b[^`\n]*)`")
SESSION = re.compile(r"^```console\n\$ kdelta (.*)\n((?:.*\n)*?)```$", re.MULTILINE)
INCLUDE = re.compile(r'^ *--8<-- "([^"]+?)(?::(\d+):(\d+))?"$', re.MULTILINE)


def commands(page: Path) -> Iterator[list[str]]:
    """The command lines in blocks of code and in sentences, as words; what follows two blanks
    explains them.
    """
    text = page.read_text()
    for line in (*COMMAND.findall(text), *INLINE.findall(text)):
        joined = re.sub(r"\\\n *", "", line).strip()
        shown = re.split(r" {2,}|, |\|", joined)[0]
        yield shlex.split(re.sub(r"[\[\]]", " ", shown).replace("'", ""))


def unknown(words: list[str]) -> list[str]:
    """The command or the options in these words that do not exist."""
    name, *rest = words
    if name in removed.COMMANDS:
        return []
    if name not in COMMANDS:
        return [name]
    known = EVERYWHERE.union(*(one.opts for one in COMMANDS[name].params))
    given = rest[: rest.index("--")] if "--" in rest else rest
    options = [word.split("=")[0] for word in given if word.startswith("-")]
    return [f"{name} {one}" for one in options if one not in known]


@EVERY
def test_commands_and_options_of_a_page_exist(page: Path) -> None:
    assert [one for words in commands(page) for one in unknown(words)] == []


def test_unknown_command_or_option_is_found() -> None:
    assert unknown(["compares", "A"]) == ["compares"]
    assert unknown(["compare", "A", "--cpus", "zen3"]) == ["compare --cpus"]
    assert unknown(["run", "K", "--", "ls", "--no-such"]) == []


def test_readme_commands_are_seen() -> None:
    seen = {words[0] for words in commands(ROOT / "README.md")}
    assert len(seen) > 5


def test_shown_output_is_printed() -> None:
    sessions = [found for page in PAGES for found in SESSION.findall(page.read_text())]
    assert sessions
    for line, output in sessions:
        printed = kdelta(*shlex.split(line)) + "\n"
        assert doctest.OutputChecker().check_output(output, printed, doctest.ELLIPSIS), line


def test_included_lines_are_whole_paragraphs() -> None:
    """Else the file has changed, and the page shows a part that was not chosen."""
    included = [found for page in PAGES for found in INCLUDE.findall(page.read_text())]
    assert included
    for name, first, last in included:
        lines = ["", *(ROOT / name.split(":")[0]).read_text().split("\n"), ""]
        if first:
            assert lines[int(first) - 1] == lines[int(last) + 1] == "", name
            assert lines[int(first)], name
            assert lines[int(last)], name


def test_example_program_runs_without_kdelta(tmp_path: Path) -> None:
    program, source = tmp_path / "sorted", ROOT / "docs/how-to/sorted.c"
    flags = ("-O2", "-Wall", "-Werror", f"-I{ROOT / 'native/include'}")
    subprocess.run(["gcc", *flags, "-o", program, source], check=True)
    assert subprocess.run([program], check=True).returncode == 0
