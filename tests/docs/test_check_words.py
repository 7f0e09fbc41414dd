# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/check-words finds what it has to, and lets the rest pass."""

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/check-words"


def check(path: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([SCRIPT, path], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("# It is above nought.", "zero"),
        ("def test_what_hangs_on_it() -> None: ...", "depend on"),
        ("class HeldAgainst: ...", "compared with"),
        ("/* Linked anew. */", "again"),
    ],
)
def test_banned_word_fails_with_place_and_replacement(
    tmp_path: Path, text: str, instead: str
) -> None:
    path = tmp_path / "a.py"
    path.write_text(f"# fine\n{text}\n")
    found = check(path)
    assert found.returncode == 1
    assert f"{path}:2: " in found.stdout
    assert instead in found.stdout


def test_line_of_results_with_too_many_words_fails_and_code_is_one_word(tmp_path: Path) -> None:
    path = tmp_path / "results.md"
    path.write_text(f"| {'word ' * 18}| `pytest tests/a.py` | [b](c d e) |\n\n{'word ' * 30}\n")
    assert check(path).returncode == 0
    path.write_text(f"| {'word ' * 19}| `pytest tests/a.py` | [b](c d e) |\n")
    assert f"{path}:1: 21 words: write 20 at most, or two lines" in check(path).stdout


def test_words_that_contain_a_banned_one_pass(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("Amendments besides those are withheld; a cloud renewal depends on it.\n")
    assert check(path).returncode == 0
