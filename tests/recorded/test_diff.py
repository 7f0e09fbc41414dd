# SPDX-License-Identifier: GPL-2.0-or-later
"""The recorded proof of docs/cases/diff: 30 instructions that were planted are the first line."""

from pathlib import Path
from typing import Any

import pytest
from reading import read_document

RECORD = Path(__file__).parents[2] / "docs/cases/diff/thirty-more.json"
PLANTED = "do_sys_openat2"
INSNS = 30


@pytest.fixture(scope="module")
def record() -> Any:
    return read_document(RECORD.read_bytes())


def test_it_is_the_first_line_with_thirty_a_call(record: Any) -> None:
    (region,) = record.regions
    calls = region.a_iterations
    assert calls == region.b_iterations == 300
    first = record.lines[0]
    assert (first.name, first.how, first.added) == (PLANTED, "same", INSNS * calls)
    # Nothing else did more or less, in any context.
    assert [line.name for line in record.lines if line.added] == [PLANTED]
    assert record.total.added == INSNS * calls
    assert {(one.context, one.part): one.b - one.a for one in record.insns if one.b != one.a} == {
        ("own", "kernel"): INSNS * calls
    }


def test_the_path_of_calls_that_brought_it(record: Any) -> None:
    assert record.calls
    (brought,) = [one for one in record.calls if one.b_own != one.a_own]
    assert (brought.name, brought.a_calls, brought.b_calls) == (PLANTED, 300, 300)
    path = [brought]
    while path[-1].parent >= 0:
        path.append(record.calls[path[-1].parent])
    assert [one.name for one in path[1:4]] == ["__x64_sys_openat", "x64_sys_call", "do_syscall_64"]
    assert {one.b_inclusive - one.a_inclusive for one in path} == {INSNS * 300}


def test_the_line_and_the_instructions(record: Any) -> None:
    assert record.source
    (line,) = [one for one in record.source if one.a != one.b]
    assert (line.file, line.a_line, line.b - line.a) == ("fs/open.c", None, INSNS * 300)
    assert "nop" in line.text
    (function,) = record.annotated
    alone = [pair for pair in function.pairs if pair.a is None or pair.b is None]
    assert [(pair.b.text, pair.b.executed) for pair in alone if pair.b] == [("nop", 300)] * INSNS
    assert len(alone) == INSNS
    assert all(pair.alike for pair in function.pairs if pair not in alone)
