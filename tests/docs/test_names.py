# SPDX-License-Identifier: GPL-2.0-or-later
"""Names that can be searched: no two classes of the package have one name, and few functions; and
what modules hold is not changed behind a caller's back.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src/kdelta"
FILES = {str(path.relative_to(SOURCE)): path.read_text() for path in SOURCE.rglob("*.py")}

NAMESAKES = 20
"""How many names public functions of two modules may share: lower it with each that goes."""

STATE = {
    "host/in_use.py": {"_used"},  # descriptors that the process holds locked until it ends
    "kernels/objects/digest.py": {"_last_read"},  # what the next commit's build mostly has, too
}
"""The dicts, sets and lists of modules that functions change."""

_CHANGES = {"add", "append", "clear", "extend", "pop", "setdefault", "update"}
_MADE = (ast.Dict, ast.List, ast.Set, ast.Call)


def classes(files: dict[str, str]) -> dict[str, list[str]]:
    """The public classes of sources by name, with the files that define them."""
    found = defaultdict(list)
    for name, text in files.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(name)
    return found


def namesakes(files: dict[str, str]) -> dict[str, set[str]]:
    """The public functions that several modules define, with these."""
    found = defaultdict(set)
    for name, text in files.items():
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_":
                found[node.name].add(name)
    return {name: where for name, where in found.items() if len(where) > 1}


def state(text: str) -> set[str]:
    """The dicts, sets and lists of a module that anything in it changes."""
    tree = ast.parse(text)
    made = {
        ast.unparse(target)
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, _MADE)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if not ast.unparse(node.value).startswith("threading.Event")
    }
    return made & set(_changed(tree))


def _changed(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        is_put = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del)
        if is_put or (isinstance(node, ast.Attribute) and node.attr in _CHANGES):
            assert isinstance(node, ast.Subscript | ast.Attribute)
            yield ast.unparse(node.value)


def test_no_class_name_stands_for_two_things() -> None:
    found = classes(FILES)
    assert len(found) > 500
    assert {name: where for name, where in found.items() if len(where) > 1} == {}


def test_a_second_class_of_a_name_is_found() -> None:
    assert classes({"a.py": "class A: ...", "b.py": "class A: ..."})["A"] == ["a.py", "b.py"]


def test_few_function_names_stand_for_two_things() -> None:
    assert len(namesakes(FILES)) == NAMESAKES


def test_state_of_modules_is_what_has_a_reason() -> None:
    assert {name: found for name, text in FILES.items() if (found := state(text))} == STATE


def test_state_is_found_however_it_is_changed() -> None:
    text = "a: dict[int, int] = {}\nb = []\nc = set()\nd = {}\n"
    text += "def f(x):\n  a[1] = x\n  b[:] = [x]\n  c.add(x)\n  return d[1]\n"
    assert state(text) == {"a", "b", "c"}
