# SPDX-License-Identifier: GPL-2.0-or-later
"""Text of perf script as inferno's stackcollapse-perf reads it."""

from pathlib import Path

import pytest

from kdelta.counts.profile import Task
from tests.profiles import profile_of
from tests.report.exports.example import NAMING, OTHER, READ, example, made, output, tool


def collapsed(file: Path) -> dict[str, int]:
    """Periods by stack, outermost first; it begins with the program."""
    text = output(tool("inferno/bin/inferno-collapse-perf"), file)
    pairs = (line.rpartition(" ") for line in text.splitlines())
    return {stack: int(count) for stack, _, count in pairs}


@pytest.mark.outside
def test_stacks_and_periods_are_those_of_the_tree(tmp_path: Path) -> None:
    found = collapsed(made("perf-script", tmp_path, example()))
    assert sum(found.values()) == sum(READ.values()) + sum(OTHER.values())
    top = "work;read;own;main;do_syscall_64"
    assert found[top] == 100
    assert found[f"{top};vfs_read;walk;walk;hook;walk"] == 30
    assert found["work;read;interrupts;irq_entry;tick"] == 60


@pytest.mark.outside
def test_odd_names_break_no_line(tmp_path: Path) -> None:
    found = collapsed(made("perf-script", tmp_path, example()))
    # The reader itself cuts names at a parenthesis, as it does with C++.
    (odd,) = [stack for stack in found if "copy" in stack]
    assert odd.startswith('work;read;own;main;do_syscall_64;vfs_read;copy <to>: "user"')
    assert found[odd] == 7
    assert sum(n for stack, n in found.items() if ";read (x)" in stack or ";read ;" in stack) == 3


@pytest.mark.outside
@pytest.mark.parametrize("program", ["a", "a 1 b", "(sd-pam)", "a\tb\nc", "ccache gcc 12/12 [1]"])
def test_odd_programs_are_one_word(tmp_path: Path, program: str) -> None:
    profile = profile_of({("main",): 12}, program=program)
    assert profile.tasks == (Task(program),)
    found = collapsed(made("perf-script", tmp_path, [profile]))
    word = "".join("_" if c in "()" or c.isspace() else c for c in program)
    assert found == {f"{word};work;own;main": 12}


def test_a_module_and_the_kernel_are_told_as_perf_tells_them(tmp_path: Path) -> None:
    lines = made("perf-script", tmp_path, example(), NAMING).read_text().splitlines()
    assert "\t            6000 hook+0x0 ([nf_nat])" in lines
    assert "\t            2000 do_syscall_64+0x0 ([kernel.kallsyms])" in lines
    assert "# run: 7f3a" in lines


def test_times_are_the_sums_of_the_periods_before(tmp_path: Path) -> None:
    profile = profile_of({("main",): 2_000_001, ("main", "f"): 5, ("main", "f", "g"): 7})
    lines = made("perf-script", tmp_path, [profile]).read_text().splitlines()
    heads = [line.split()[3:5] for line in lines if line.startswith("work ")]
    assert heads == [["0.000000:", "2000001"], ["2.000001:", "5"], ["2.000006:", "7"]]
