# SPDX-License-Identifier: GPL-2.0-or-later
"""Folded stacks as inferno, a flamegraph.pl in Rust, reads them."""

import html
import re
from pathlib import Path

import pytest

from kdelta.report.exports.folded import frame_text
from tests.profiles import profile_of
from tests.report.exports.example import (
    NAMING,
    OTHER,
    READ,
    example,
    inclusive,
    made,
    output,
    tool,
)

_TITLE = re.compile(r"<title>(.*?) \(([\d,]+) samples, [\d.]+%\)</title>", re.DOTALL)


def flames(file: Path) -> dict[str, int]:
    """What a flame graph shows by frame: the sum of all frames of that name."""
    picture = output(tool("inferno/bin/inferno-flamegraph"), "--minwidth=0", file)
    found: dict[str, int] = {}
    for name, samples in _TITLE.findall(picture):
        plain = html.unescape(name)
        found[plain] = found.get(plain, 0) + int(samples.replace(",", ""))
    return found


@pytest.mark.outside
def test_every_frame_has_its_inclusive_figure(tmp_path: Path) -> None:
    found = flames(made("folded", tmp_path, example()))
    cum = inclusive([READ, OTHER])
    assert found["all"] == sum(READ.values()) + sum(OTHER.values())
    assert found["read"] == sum(READ.values())
    assert found["interrupts"] == cum["irq_entry"]
    for name in ("do_syscall_64", "vfs_read", "tick"):
        assert found[name] == cum[name]
    assert found["main work"] == cum["work:main"]
    assert found["hook [nf nat]"] == cum["[nf nat]:hook"]


def test_the_root_is_region_then_context_then_program(tmp_path: Path) -> None:
    lines = made("folded", tmp_path, example()).read_text().splitlines()
    assert "read;own;work;main work;do_syscall_64;vfs_read 40" in lines
    assert "read;interrupts;work;irq_entry;tick 60" in lines


@pytest.mark.outside
def test_an_odd_name_is_one_frame(tmp_path: Path) -> None:
    found = flames(made("folded", tmp_path, example()))
    assert found['copy <to>: "user" (x) $(y)_12'] == 7
    assert found["read (x): <b>&amp: [1m"] == sum(OTHER.values())


@pytest.mark.parametrize(
    ("name", "text"),
    [("a;b", "a:b"), ("leaf 12", "leaf_12"), ("a 1.5", "a_1.5"), ("a 12 b", "a 12 b")],
)
def test_what_a_reader_would_take_for_a_count(name: str, text: str) -> None:
    assert frame_text(name) == text


def test_functions_of_one_name_are_one_line(tmp_path: Path) -> None:
    profile = profile_of({("a",): 1, ("a", "b"): 2, ("a", "c;"): 3, ("a", "c; "): 4})
    text = made("folded", tmp_path, [profile]).read_text()
    assert text.splitlines()[1:] == ["work;own;work;a;b 2", "work;own;work;a;c: 7"]


@pytest.mark.outside
def test_two_of_them_make_a_differential_one(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    for folder in (before, after):
        folder.mkdir()
    more = {**READ, ("work:main", "do_syscall_64", "vfs_read"): 70}
    old = made("folded", before, [profile_of(READ, region="read")], NAMING)
    new = made("folded", after, [profile_of(more, region="read")], NAMING)
    difference = output(tool("inferno/bin/inferno-diff-folded"), old, new)
    assert "read;own;work;main work;do_syscall_64;vfs_read 40 70" in difference.splitlines()
    (tmp_path / "both").write_text(difference)
    picture = output(tool("inferno/bin/inferno-flamegraph"), "--minwidth=0", tmp_path / "both")
    assert re.search(r"<title>vfs_read \([\d,]+ samples, [\d.]+%; \+[\d.]+%\)", picture)
