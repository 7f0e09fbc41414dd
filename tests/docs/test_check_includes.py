# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/check-includes finds C files that depend on each other, whichever files they are in."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/check-includes"

FILES = {
    "part/one.h": "int one(void);\nint one_more(void);\n",
    "part/one.c": '#include "one.h"\nint one(void)\n{\n    return 1;\n}\n',
    "part/more.c": '#include "one.h"\nint one_more(void)\n{\n    return one() + 1;\n}\n',
    "part/two.h": '#include "one.h"\nint two(int n);\n',
    "part/two.c": '#include "two.h"\nint two(int n)\n{\n    return one_more() * n;\n}\n',
    "part/main.c": '#include "two.h"\nint main(void)\n{\n    return two(one());\n}\n',
    "other/three.h": '#include "../part/two.h"\nint three(void);\n',
}


def checked(folder: Path, changed: str = "", included: str = "") -> tuple[int, str]:
    """Check the files above, one of which includes one more header."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f'#include "{included}"\n{text}' if name == changed else text)
    done = subprocess.run(
        [sys.executable, SCRIPT, folder], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr


def test_includes_in_one_direction_pass(tmp_path: Path) -> None:
    assert checked(tmp_path) == (0, "")


@pytest.mark.parametrize(
    ("changed", "included", "ring"),
    [
        ("part/one.h", "two.h", {"part/one.h", "part/two.h"}),
        ("part/one.c", "two.h", {"part/one.h", "part/two.h"}),
        ("part/more.c", "two.h", {"part/one.h", "part/two.h"}),
        ("part/one.c", "../other/three.h", {"part/one.h", "part/two.h", "other/three.h"}),
    ],
)
def test_circle_fails_and_is_named(
    changed: str, included: str, ring: set[str], tmp_path: Path
) -> None:
    code, shown = checked(tmp_path, changed, included)
    first, *others = shown.strip().split(" -> ")
    assert code == 1
    assert {first, *others} == ring
    assert others[-1] == first
