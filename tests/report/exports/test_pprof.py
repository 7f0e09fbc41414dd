# SPDX-License-Identifier: GPL-2.0-or-later
"""pprof's format as Google's pprof reads it."""

import re
from pathlib import Path

import pytest

from kdelta.counts.source_lines import Frame, SourceLines
from kdelta.report.exports import Naming
from kdelta.report.exports.model import clean
from tests.profiles import profile_of
from tests.report.exports.example import (
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
    tool,
)

pytestmark = pytest.mark.outside

_TOP = re.compile(r"^ *(\d+) +[\d.]+% +[\d.]+% +(\d+) +[\d.]+%  (.*)$", re.MULTILINE)


def pprof(file: Path, *options: str) -> str:
    home = str(file.parent)
    return output(tool("pprof/pprof"), "-symbolize=none", *options, file, HOME=home)


def top(file: Path, *options: str) -> dict[str, tuple[int, int]]:
    """Own and inclusive figures by function."""
    all_nodes = ("-top", "-nodecount=1000", "-nodefraction=0", "-edgefraction=0", "-unit=count")
    text = pprof(file, *all_nodes, *options)
    return {name: (int(flat), int(cum)) for flat, cum, name in _TOP.findall(text)}


def plain(name: str) -> str:
    return clean(name.rpartition(":")[2])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return made("pprof", tmp_path, example())


def test_own_and_inclusive_are_those_of_the_tree(file: Path) -> None:
    flat, cum = own([READ, OTHER]), inclusive([READ, OTHER])
    assert top(file) == {plain(name): (flat[name], cum[name]) for name in cum}


def test_every_column_is_a_sample_type(file: Path) -> None:
    raw = pprof(file, "-raw")
    assert (
        "instructions/count[dflt] loads/count stores/count string-bytes/bytes "
        "string-iterations/count" in raw
    )
    loads = sum(profile.row_costs().total().loads for profile in example())
    assert sum(flat for flat, _ in top(file, "-sample_index=loads").values()) == loads


def test_region_and_context_and_task_are_tags(file: Path) -> None:
    tags = pprof(file, "-tags")
    whole = sum(READ.values())
    assert re.search(rf"{whole} \( *[\d.]+%\): read$", tags, re.MULTILINE)
    assert f": {clean(ODD_REGION)}" in tags
    assert re.search(r"110 \( *[\d.]+%\): interrupts", tags)
    assert sum(flat for flat, _ in top(file, "-tagfocus=region=^read$").values()) == whole


def test_mappings_are_the_origins_the_kernel_first(file: Path) -> None:
    raw = pprof(file, "-raw")
    mappings = raw[raw.index("Mappings") :]
    names = re.findall(r"^\d+: 0x\w+/0x\w+/0x0 (.*?) *\[FN\]", mappings, re.MULTILINE)
    assert names == ["kernel", "work", "[nf nat]"]
    assert "File: kernel" in pprof(file, "-top")


def test_comments_log_what_it_is_of(file: Path) -> None:
    comments = pprof(file, "-comments")
    assert "kernel: deb:linux-image" in comments
    assert "command: a 'b' <c> d" in comments


def test_with_lines_a_function_is_told_by_line(tmp_path: Path) -> None:
    naming = naming_with({4096 * n: ("a b.c", n) for n in range(1, 5)})
    file = made("pprof", tmp_path, example(), naming)
    found = top(file, "-lines")
    assert found["vfs_read a b.c:3"][0] == 40
    assert found["main"][0] == 6
    assert sum(flat for flat, _ in found.values()) == sum(own([READ, OTHER]).values())


def test_odd_names_do_not_break_a_picture(file: Path) -> None:
    dot = pprof(file, "-dot")
    assert 'copy <to>; \\"user\\" (x) $(y) 12' in dot
    assert top(file)[clean(ODD)] == (7, 7)


def test_inlined_functions_are_frames_of_their_own(tmp_path: Path) -> None:
    syscall = example()[0].functions[1]
    frames = (Frame("check", "inline.h", 9), Frame("do_syscall_64", "common.c", 76))
    lines = SourceLines({("kernel", syscall.address): frames})
    file = made("pprof", tmp_path, example(), Naming(lines=lines))
    found = top(file)
    assert found["check (inline)"][0] == 102
    assert found["do_syscall_64"] == (0, inclusive([READ, OTHER])["do_syscall_64"])
    assert top(file, "-noinlines")["do_syscall_64"][0] == 102
    assert "check inline.h:9 (inline)" in top(file, "-lines")


def test_code_without_symbols_is_apart_by_object(tmp_path: Path) -> None:
    file = made("pprof", tmp_path, [profile_of(NAMELESS)])
    assert {name: flat for name, (flat, _) in top(file).items() if "[no symbol]" in name} == {
        f"[no symbol] {stack[-1].rpartition(':')[0]}": insns for stack, insns in NAMELESS.items()
    }
