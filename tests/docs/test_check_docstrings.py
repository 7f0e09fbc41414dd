# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/check-docstrings: what is refused, and what was there before."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/check-docstrings"


def checked(folder: Path, source: str, *before: str) -> tuple[int, str]:
    """The exit code and the output for one source file, with a list of functions of before."""
    (folder / "src").mkdir(exist_ok=True)
    (folder / "src/one.py").write_text(source)
    (folder / "before.txt").write_text("".join(f"{line}\n" for line in before))
    words = [sys.executable, str(SCRIPT), str(folder / "src"), str(folder / "before.txt")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ('def f():\n    """The sum."""\n', "f: its docstring begins with 'the', which is no verb"),
        ('class A:\n    def f(self):\n        """A sum."""\n', "A.f: its docstring begins with"),
        ('def _f():\n    return "its price"\n', "_f: 'price': write cost"),
        ("def f():\n    # told so\n    return 1\n", "f: 'told': write reported"),
    ],
)
def test_new_function_that_is_not_plain_is_refused(source: str, fault: str, tmp_path: Path) -> None:
    code, shown = checked(tmp_path, source)
    assert code == 1
    assert fault in shown


@pytest.mark.parametrize(
    "source",
    [
        'def f():\n    """Return the sum."""\n',
        'def f():\n    """Sums up."""\n',
        'def _f():\n    """The sum."""\n',
        "def f():\n    return 1\n",
        'def f():\n    def g():\n        """The sum."""\n',
    ],
)
def test_plain_function_passes(source: str, tmp_path: Path) -> None:
    assert checked(tmp_path, source) == (0, "")


def test_function_of_before_passes_until_it_is_changed(tmp_path: Path) -> None:
    source = 'def f():\n    """The sum."""\n    return 1\n'
    key = "f 1208370fac9a"
    assert checked(tmp_path, source, key) == (0, "")
    assert checked(tmp_path, f"import sys\n\n\n{source}", key) == (0, "")
    assert checked(tmp_path, source.replace("1", "2"), key)[0] == 1


def test_list_has_no_functions_that_are_gone(tmp_path: Path) -> None:
    code, shown = checked(tmp_path, "def f():\n    return 1\n", "g 0123456789ab")
    assert code == 1
    assert "lists 1 functions that are gone: --prune forgets them" in shown
