# SPDX-License-Identifier: GPL-2.0-or-later
"""Line numbers in tables of WARN and BUG, in objects as gcc makes them."""

import subprocess
from pathlib import Path
from shutil import which

import pytest

from kdelta.kernels.objects.lines import without_lines
from kdelta.kernels.objects.objects import ObjectContent, read_object

pytestmark = pytest.mark.skipif(not which("gcc"), reason="needs gcc")

# As arch/x86/include/asm/bug.h has it, put shortly.
WARN = r"""
#define WARN(flags) asm volatile("1: ud2\n.pushsection __bug_table,\"aw\"\n" \
    "2: .long 1b - .\n.long %c0 - .\n" ".word %c1\n.word %c2\n.org 2b + 12\n.popsection" \
    :: "i"(__FILE__), "i"(__LINE__), "i"(flags))
int state;
"""
USES = "void one(void) { if (state) WARN(1); }\nvoid two(void) { state++; WARN(FLAGS); }\n"


def compiled(folder: Path, text: str, *, flags: int = 2) -> bytes:
    (folder / "a.c").write_text(f"#define FLAGS {flags}\n{WARN}{text}")
    argv = ["gcc", "-O2", "-fno-pic", "-mcmodel=kernel", "-c", "a.c", "-o", "a.o"]
    subprocess.run(argv, check=True, cwd=folder)
    return (folder / "a.o").read_bytes()


def held(content: bytes) -> ObjectContent:
    found = read_object(content)
    assert found is not None
    return found


def test_lines_that_moved_are_the_only_thing_that_is_left_out(tmp_path: Path) -> None:
    before, after = compiled(tmp_path, USES), compiled(tmp_path, f"\n\n/* more */\n{USES}")
    assert held(before).functions["two"] != held(after).functions["two"]
    assert held(without_lines(before)) == held(without_lines(after))
    other = compiled(tmp_path, USES, flags=3)
    assert (
        held(without_lines(before)).functions["two"] != held(without_lines(other)).functions["two"]
    )
    assert (
        held(without_lines(before)).functions["one"] == held(without_lines(other)).functions["one"]
    )


def test_what_else_is_in_the_table_stays(tmp_path: Path) -> None:
    content = compiled(tmp_path, USES)
    assert len(without_lines(content)) == len(content)
    differ = [
        at for at, (a, b) in enumerate(zip(content, without_lines(content), strict=True)) if a != b
    ]
    assert 2 <= len(differ) <= 4
    assert differ[-1] - differ[0] in range(11, 15), "one line in each of two records of 12 bytes"


def test_objects_without_such_a_table_and_other_files_are_as_they_are(tmp_path: Path) -> None:
    content = compiled(tmp_path, "int other(void) { return state; }\n")
    assert without_lines(content) == content
    assert without_lines(b"no object") == b"no object"
