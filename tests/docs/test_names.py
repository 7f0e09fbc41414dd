# SPDX-License-Identifier: GPL-2.0-or-later
"""Names that can be searched: no class of the package is called as another one."""

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src/kdelta"


def classes(files: dict[str, str]) -> dict[str, list[str]]:
    """The public classes of sources by name, with the files that define them."""
    found = defaultdict(list)
    for name, text in files.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(name)
    return found


def test_no_class_name_stands_for_two_things() -> None:
    files = {str(path.relative_to(SOURCE)): path.read_text() for path in SOURCE.rglob("*.py")}
    found = classes(files)
    assert len(found) > 500
    assert {name: where for name, where in found.items() if len(where) > 1} == {}


def test_a_second_class_of_a_name_is_found() -> None:
    assert classes({"a.py": "class A: ...", "b.py": "class A: ..."})["A"] == ["a.py", "b.py"]
