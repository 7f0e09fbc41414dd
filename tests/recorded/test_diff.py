# SPDX-License-Identifier: GPL-2.0-or-later
"""The recorded proof of docs/cases/diff: 30 instructions that were planted are the first line."""

import json
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
    (a,), (b,) = record.a_regions, record.b_regions
    calls = a.iterations
    assert calls == b.iterations == 300
    first = record.lines[0]
    assert (first.match.name, first.match.how) == (PLANTED, "same")
    assert first.b - first.a == INSNS * calls
    # Nothing else did more or less, in any context.
    assert [line.match.name for line in record.lines if line.a != line.b] == [PLANTED]
    insns = json.loads(RECORD.read_text())["insns"]
    added = {(one["context"], one["part"]): one["b"] - one["a"] for one in insns}
    assert {key: count for key, count in added.items() if count} == {
        ("own", "kernel"): INSNS * calls
    }


def test_the_path_of_calls_that_brought_it(record: Any) -> None:
    calls = record.views.changes
    (brought,) = [one for one in calls if one.b_own != one.a_own]
    assert (brought.key[1], brought.a_calls, brought.b_calls) == (PLANTED, 300, 300)
    path = [brought]
    while path[-1].parent >= 0:
        path.append(calls[path[-1].parent])
    assert [one.key[1] for one in path[1:4]] == [
        "__x64_sys_openat",
        "x64_sys_call",
        "do_syscall_64",
    ]
    assert {one.b_inclusive - one.a_inclusive for one in path} == {INSNS * 300}


def test_the_line_and_the_instructions(record: Any) -> None:
    (line,) = [one for one in record.views.lines if one.a != one.b]
    assert (line.b_line.file, line.a_line, line.b - line.a) == ("fs/open.c", None, INSNS * 300)
    assert "nop" in line.text
    (function,) = record.views.annotated
    alone = [pair for pair in function.pairs if pair.a is None or pair.b is None]
    assert [(pair.b.text, pair.b.count) for pair in alone if pair.b] == [("nop", 300)] * INSNS
    assert len(alone) == INSNS
    assert all(pair.alike for pair in function.pairs if pair not in alone)
