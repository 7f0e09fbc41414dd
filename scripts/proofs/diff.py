#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A diff that a command recorded: 30 instructions that were planted are its first line.

    scripts/proofs/diff.py

checks docs/cases/diff/thirty-more.json; docs/cases/README.md has the `kdelta diff` that made it.
"""

import json
import sys

from campaign import CASES, failures
from reading import read_document

RECORD = CASES / "diff/thirty-more.json"
PLANTED, INSNS, CALLS = "do_sys_openat2", 30, 300


def check_it_is_the_first_line_with_thirty_a_call() -> None:
    """Check that nothing else does more or less, in any context."""
    record = read_document(RECORD.read_bytes())
    (a,), (b,) = record.a_regions, record.b_regions
    assert a.iterations == b.iterations == CALLS
    first = record.lines[0]
    assert (first.match.name, first.match.how) == (PLANTED, "same")
    assert first.b - first.a == INSNS * CALLS
    assert [line.match.name for line in record.lines if line.a != line.b] == [PLANTED]
    insns = json.loads(RECORD.read_text())["insns"]
    added = {(one["context"], one["part"]): one["b"] - one["a"] for one in insns}
    found = {key: count for key, count in added.items() if count}
    assert found == {("own", "kernel"): INSNS * CALLS}


def check_the_path_of_calls_that_brought_it() -> None:
    """Check the callers."""
    calls = read_document(RECORD.read_bytes()).views.changes
    (brought,) = [one for one in calls if one.b_own != one.a_own]
    assert (brought.key[1], brought.a_calls, brought.b_calls) == (PLANTED, CALLS, CALLS)
    path = [brought]
    while path[-1].parent >= 0:
        path.append(calls[path[-1].parent])
    names = [one.key[1] for one in path[1:4]]
    assert names == ["__x64_sys_openat", "x64_sys_call", "do_syscall_64"]
    assert {one.b_inclusive - one.a_inclusive for one in path} == {INSNS * CALLS}


def check_the_line_and_the_instructions() -> None:
    """Check the line of the source, and the instructions next to each other."""
    views = read_document(RECORD.read_bytes()).views
    (line,) = [one for one in views.lines if one.a != one.b]
    assert (line.b_line.file, line.a_line, line.b - line.a) == ("fs/open.c", None, INSNS * CALLS)
    assert "nop" in line.text
    (function,) = views.annotated
    alone = [pair for pair in function.pairs if pair.a is None or pair.b is None]
    assert [(pair.b.text, pair.b.count) for pair in alone if pair.b] == [("nop", CALLS)] * INSNS
    assert len(alone) == INSNS
    assert all(pair.alike for pair in function.pairs if pair not in alone)


if __name__ == "__main__":
    sys.exit(failures(sys.modules[__name__]))
