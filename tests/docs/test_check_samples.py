# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/check-samples finds output that was not recorded; what pages say of README's is in it."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts/check-samples"
SAMPLE = ROOT / "docs/samples/comparison.txt"
EXPLAINED = (
    ("README.md", "How to read it:", "## What it answers", ""),
    ("docs/tutorial/first-comparison.md", "## 3.", "## 4.", "operation |sched_yield "),
)
"""What explains README's sample: a page, where that begins and ends, and how lines begin that it is
about.
"""
FIGURE = re.compile(r"\b(?:\d+\.\d+|\d{3,})\b(?! cycles)")


def check(path: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([SCRIPT, path], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "output",
    [
        "$ kdelta log",
        "stat  3564  3634  +1.95%  +-0.16%",
        "write-null-1b  657  exact",
        "cc1  35  3,319,036,418",
        "not ok 1 stat",
        '<testcase name="stat">',
        "Subject: [kdelta] syscalls: 1 slower",
        "kdelta: no such kernel",
    ],
)
@pytest.mark.parametrize(
    "block", ["\n```text\n{}\n```\n", "\n    {}\n", "\n    kdelta log\n\n    {}\n"]
)
def test_output_in_a_block_fails_with_place(tmp_path: Path, block: str, output: str) -> None:
    page = tmp_path / "page.md"
    text = f"It prints:\n{block.format(output)}"
    page.write_text(text)
    found = check(page)
    assert found.returncode == 1
    assert f"{page}:{text[: text.index(output)].count(chr(10)) + 1}: " in found.stdout


@pytest.mark.parametrize(
    "text",
    [
        'It prints:\n\n```text\n--8<-- "docs/samples/log.txt"\n```\n',
        "Run\n\n    kdelta compare A B --margin 2   judge with 2\n\nIt was +1.95% more.\n",
        "```console\n$ kdelta --version\n...\n```\n",
    ],
)
def test_include_command_and_prose_pass(tmp_path: Path, text: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    assert check(page).returncode == 0


@pytest.mark.parametrize(("page", "first", "last", "lines"), EXPLAINED)
def test_figures_that_explain_the_sample_are_in_it(
    page: str, first: str, last: str, lines: str
) -> None:
    text = (ROOT / page).read_text()
    figures = set(FIGURE.findall(text[text.index(first) : text.index(last)]))
    assert figures
    shown = [line for line in SAMPLE.read_text().splitlines() if re.match(lines, line)]
    assert figures - set(FIGURE.findall("\n".join(shown))) == set()
