# SPDX-License-Identifier: GPL-2.0-or-later
"""callgrind.out as callgrind_annotate reads it: it is Valgrind's own reader."""

import re
from pathlib import Path

import msgspec
import numpy as np
import pytest

from kdelta.report.exports.model import clean
from tests.profiles import profile_of
from tests.report.exports.example import (
    MAIN,
    NAMELESS,
    ODD,
    ODD_REGION,
    OTHER,
    READ,
    example,
    inclusive,
    made,
    naming_with,
    output,
    own,
)

pytestmark = pytest.mark.outside

_LINE = re.compile(r"^ *(?P<insns>[\d,]+) \( ?[\d.]+%\).*?  (?P<mark>[<>*] *)?(?P<name>\S*:.*)$")


def annotated(file: Path, *options: str) -> dict[str, int]:
    """Instructions by what callgrind_annotate names, which is FILE:FUNCTION [OBJECT]."""
    text = output("callgrind_annotate", "--threshold=100", *options, file)
    assert "WARNING" not in text
    found = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match and (match["mark"] or "*").strip() == "*":
            found[match["name"]] = int(match["insns"].replace(",", ""))
    return found


def name_in_reader(function: str) -> str:
    origin, _, name = function.rpartition(":")
    return f"???:{clean(name)} [{origin or 'kernel'}]"


def test_own_costs_are_those_of_the_functions(tmp_path: Path) -> None:
    found = annotated(made("callgrind", tmp_path, example()))
    assert found == {name_in_reader(name): n for name, n in own([READ, OTHER]).items()}


def test_inclusive_costs_are_those_of_the_tree(tmp_path: Path) -> None:
    found = annotated(made("callgrind", tmp_path, example()), "--inclusive=yes")
    expected = inclusive([READ, OTHER])
    # callgrind_annotate sums what callers say, and walk and hook call each other.
    for name in set(expected) - {"walk", "[nf nat]:hook"}:
        assert found[name_in_reader(name)] == expected[name], name
    assert found["???:region read [[kdelta]]"] == sum(READ.values())
    assert found[f"???:region {clean(ODD_REGION)} [[kdelta]]"] == sum(OTHER.values())
    interrupts = found["???:interrupts of region read [[kdelta]]"]
    assert interrupts == READ["irq_entry",] + READ["irq_entry", "tick"]


def test_callers_and_callees_are_there(tmp_path: Path) -> None:
    file = made("callgrind", tmp_path, example())
    text = output("callgrind_annotate", "--tree=both", "--inclusive=yes", file)
    block = next(b for b in text.split("\n\n") if re.search(r"\*  \?\?\?:do_syscall_64 ", b))
    assert re.search(r"< \?\?\?:main \(2x\) \[work\]", block)
    assert re.search(r"> +\?\?\?:vfs_read \(1x\) \[kernel\]", block)


def test_the_head_names_run_and_command_in_one_line_each(tmp_path: Path) -> None:
    text = output("callgrind_annotate", made("callgrind", tmp_path, example()))
    assert "Profiled target:  a 'b' <c> d (PID 1, part 1)" in text
    assert "kernel: deb:linux-image" in text
    assert "Events recorded:  Ir Dr Dw StrBytes StrAgain" in text


def test_lines_are_in_their_files(tmp_path: Path) -> None:
    (profile,) = example()[:1]
    starts = {function.name: function.address for function in profile.functions}
    places = {
        starts["do_syscall_64"]: ("arch/x86/entry/common.c", 76),
        starts["vfs_read"]: ("fs/read write.c", 450),
    }
    naming = naming_with(places)
    (tmp_path / "fs").mkdir()
    (tmp_path / "fs/read write.c").write_text("\n" * 449 + "ssize_t vfs_read()\n")
    file = made("callgrind", tmp_path, [profile], naming)
    found = annotated(file)
    assert found["arch/x86/entry/common.c:do_syscall_64 [kernel]"] == 100
    text = output("callgrind_annotate", f"--include={tmp_path}", file, "fs/read write.c")
    assert re.search(r"^40 .*ssize_t vfs_read\(\)$", text, re.MULTILINE)
    assert re.search(r"=> \?\?\?:walk \(1x\)$", text, re.MULTILINE)


def test_code_of_another_file_is_told_as_inlined(tmp_path: Path) -> None:
    profile = example()[1]
    (main, syscall) = profile.functions
    # The function starts in one file, and what it executed is from a header.
    shifted = msgspec.structs.replace(
        profile,
        functions=(main, msgspec.structs.replace(syscall, address=syscall.address - 16)),
    )
    places = {syscall.address - 16: ("common.c", 76), syscall.address: ("inline.h", 9)}
    file = made("callgrind", tmp_path, [shifted], naming_with(places))
    assert "fi=(3) inline.h\n0x2000 9 2 2\n" in file.read_text()
    found = annotated(file)
    assert found == {"???:main [work]": 1, "inline.h:do_syscall_64": 2}


def test_an_odd_name_is_one_name(tmp_path: Path) -> None:
    found = annotated(made("callgrind", tmp_path, example()))
    assert found[name_in_reader(ODD)] == 7
    assert found[name_in_reader(MAIN)] == 6


def test_code_of_others_in_a_node_is_a_call_of_them(tmp_path: Path) -> None:
    plain = profile_of({("a",): 5, ("a", "b"): 7, ("c",): 1})
    rows = msgspec.structs.replace(plain.rows, group=np.array([0, 2, 2], np.int32))
    file = made("callgrind", tmp_path, [msgspec.structs.replace(plain, rows=rows)])
    assert annotated(file) == {name_in_reader("a"): 5, name_in_reader("c"): 8}
    inclusive = annotated(file, "--inclusive=yes")
    assert [inclusive[name_in_reader(name)] for name in "abc"] == [12, 7, 8]


def test_code_without_symbols_is_apart_by_object(tmp_path: Path) -> None:
    found = annotated(made("callgrind", tmp_path, [profile_of(NAMELESS)]))
    origins = {stack[-1].rpartition(":")[0]: insns for stack, insns in NAMELESS.items()}
    for origin, insns in origins.items():
        assert found[f"???:[no symbol] {origin} [{origin}]"] == insns
