# SPDX-License-Identifier: GPL-2.0-or-later
"""What a terminal gets of text that others wrote."""

import ast
import json
from pathlib import Path

import pytest

import kdelta
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


WAYS_OUT = {"__main__.py", "cli/output.py", "cli/words.py", "host/command.py"}


def _writes(tree: ast.AST) -> bool:
    """Whether a module prints, or writes to stdout or stderr itself."""
    calls = [ast.unparse(one.func) for one in ast.walk(tree) if isinstance(one, ast.Call)]
    streams = ("sys.stdout.", "sys.stderr.", "sys.__std")
    return any(call == "print" or (call.startswith(streams) and "write" in call) for call in calls)


def test_text_leaves_through_the_same_modules() -> None:
    root = Path(kdelta.__file__).parent
    found = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if _writes(ast.parse(path.read_bytes()))
    }
    assert found == WAYS_OUT
