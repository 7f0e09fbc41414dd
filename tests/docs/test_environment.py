# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of environment variables names all of them."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "environment.md"
INTERNAL = {"KDELTA_ANSWERS", "KDELTA_LDFLAGS", "KDELTA_TEST_PASSED", "KDELTA_WORKLOAD"}
"""What kdelta and its tests set for programs that they start themselves."""


def sources(folder: str, pattern: str) -> str:
    files = (path for path in (ROOT / folder).rglob(pattern) if path.is_file())
    return "\n".join(path.read_text(errors="replace") for path in files)


def read_variables() -> set[str]:
    """A variable is a whole string of Python, is expanded by a shell, or is asked for in C."""
    return {
        *re.findall(r'"(KDELTA_[A-Z_]*[A-Z])"', sources("src", "*.py") + sources("tests", "*.py")),
        *re.findall(r"\$\{?(KDELTA_[A-Z_]*[A-Z])", sources("scripts", "*")),
        *re.findall(r'value\(\*\w+, "(KDELTA_[A-Z_]+)"', sources("native", "*.c")),
    }


def test_environment_page_has_every_variable() -> None:
    named = set(re.findall(r"`(KDELTA_[A-Z_]+)`", PAGE.read_text()))
    assert len(read_variables()) > 10
    assert named == read_variables() - INTERNAL
