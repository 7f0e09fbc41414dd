# SPDX-License-Identifier: GPL-2.0-or-later
"""What a terminal gets of text that others wrote."""

import json

import pytest

from kdelta.spec.visible import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("a\rb\x08\x00", "a\\x0db\\x08\\x00"),
        ("\x7f\x9b2J", "\\u007f\\u009b2J"),
        ("a\u202eb\u2066", "a\\u202eb\\u2066"),
        ("\ud800", "\\ud800"),
        ("caf\u00e9", "caf\u00e9"),
    ],
)
def test_visible_escapes_control_characters_only(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_visible_json_means_the_same() -> None:
    text = "".join(map(chr, range(0x3000))) + "\ud800"
    shown = visible(json.dumps(text, ensure_ascii=False))
    assert json.loads(shown) == text
    assert visible(shown) == shown
