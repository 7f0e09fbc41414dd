# SPDX-License-Identifier: GPL-2.0-or-later
"""Keys of TOML that Python's parser would take minutes for, and those that files have."""

from pathlib import Path

import pytest

from kdelta.spec.toml import LINE_DOTS, check_toml

SOURCES = Path(__file__).parents[2] / "src/kdelta"


@pytest.mark.parametrize("part", ["a", '"\\""', " a\t", '"\x85"', '""'])
def test_a_key_has_no_more_parts_than_the_limit(part: str) -> None:
    check_toml("\n".join([".".join([part] * LINE_DOTS)] * 2))
    with pytest.raises(ValueError, match="line 2 has more than 50 dots"):
        check_toml("x = 1\n[" + ".".join([part] * (LINE_DOTS + 2)) + "]")


@pytest.mark.parametrize("path", sorted(SOURCES.rglob("*.toml")), ids=lambda path: path.name)
def test_own_files_have_no_such_line(path: Path) -> None:
    check_toml(path.read_text())
