# SPDX-License-Identifier: GPL-2.0-or-later
"""Where what two programs printed begins to differ."""

import pytest

from kdelta.studies.against.model import OutputChange
from kdelta.studies.against.study import first_change


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("a\nb\n", "a\nb\n", None),
        ("", "", None),
        ("a\nb\n", "a\nc\nd\n", (2, "b", "c")),
        ("a\n", "a\n\n", (2, "(no such line)", "")),
        ("a\n", "", (1, "a", "(no such line)")),
    ],
)
def test_the_first_line_that_differs(
    old: str, new: str, found: tuple[int, str, str] | None
) -> None:
    expected = OutputChange("standard output", *found) if found else None
    assert first_change("standard output", old, new) == expected
