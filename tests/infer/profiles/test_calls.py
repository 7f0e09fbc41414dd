# SPDX-License-Identifier: GPL-2.0-or-later
"""Trees of calls: nothing is lost or counted twice, from the top down and from a function up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.counts.profile import Profile
from kdelta.infer.profiles.calls import (
    TASK,
    Calls,
    called_profile,
    callers,
    merged_calls,
    shown_calls,
)
from kdelta.infer.profiles.matching import Key
from kdelta.infer.profiles.profile import Part, Selection
from tests.profiles import Stack, profile_of

OWN = Selection()
STACKS: dict[Stack, int] = {
    ("work:main",): 10,
    ("work:main", "work:call"): 5,
    ("work:main", "work:call", "do_syscall_64"): 7,
    ("work:main", "work:call", "do_syscall_64", "vfs_read"): 100,
    ("work:main", "do_syscall_64"): 3,
    ("work:main", "do_syscall_64", "vfs_read"): 20,
    ("work:main", "do_syscall_64", "vfs_read", "[ext4]:read"): 4,
    ("asm_interrupt",): 2,
    ("asm_interrupt", "vfs_read"): 1,
}
CONTEXTS: dict[Stack, int] = {("asm_interrupt",): 1}
NAMES = st.sampled_from(["work:main", "f", "g", "h", "[m]:f"])
TREES = st.dictionaries(
    st.lists(NAMES, min_size=1, max_size=5).map(tuple), st.integers(0, 99), min_size=1, max_size=12
)


def read(profile: Profile | None = None) -> Profile:
    return profile or profile_of(STACKS, contexts=CONTEXTS, program="work")


def by_path(calls: Calls) -> dict[tuple[str, ...], tuple[int, int, int]]:
    return {
        tuple(name for _, name in calls.path(node)): (
            calls.own[node],
            calls.inclusive[node],
            calls.calls[node],
        )
        for node in range(len(calls))
    }


def test_from_the_top() -> None:
    found = by_path(merged_calls([read()], OWN))
    assert found["work",] == (0, 149, 0)
    assert found["work", "main"] == (10, 149, 0)
    assert found["work", "main", "call"] == (5, 112, 1)
    assert found["work", "main", "do_syscall_64", "vfs_read"] == (20, 24, 1)
    assert not any("asm_interrupt" in path for path in found)


def test_whose_work_and_whose_code() -> None:
    found = by_path(merged_calls([read()], Selection(contexts=("interrupts",))))
    assert found == {
        ("interrupts",): (0, 3, 0),
        ("interrupts", "asm_interrupt"): (2, 3, 0),
        ("interrupts", "asm_interrupt", "vfs_read"): (1, 1, 1),
    }
    found = by_path(merged_calls([read()], Selection(parts=(Part.MODULES,))))
    assert found["work",] == (0, 4, 0)
    assert found["work", "main", "do_syscall_64", "vfs_read"] == (0, 4, 1)


def test_regions_are_one_tree() -> None:
    found = by_path(merged_calls([read(), read()], OWN))
    assert found["work", "main", "call"] == (10, 224, 2)


def test_inclusive_by_function() -> None:
    lines = {(line.context, line.name): line for line in called_profile(read()).lines}
    reads = lines["own", "vfs_read"]
    assert (reads.cost.insns, reads.inclusive, reads.calls) == (120, 124, 2)
    main = lines["own", "main"]
    assert (main.cost.insns, main.inclusive, main.calls) == (10, 149, 0)
    assert lines["interrupts", "vfs_read"].inclusive == 1
    assert lines["interrupts", "asm_interrupt"].inclusive == 3


def test_recursion_is_counted_once() -> None:
    stacks: dict[Stack, int] = {
        ("f",): 1,
        ("f", "g"): 10,
        ("f", "g", "f"): 100,
        ("f", "g", "f", "g"): 1000,
    }
    lines = {line.name: line for line in called_profile(profile_of(stacks)).lines}
    assert lines["f"].inclusive == 1111
    assert lines["g"].inclusive == 1110
    assert lines["g"].calls == 2
    found = by_path(callers(merged_calls([profile_of(stacks)], OWN), ("kernel", "g")))
    assert found == {
        ("g",): (0, 1110, 1),
        ("g", "f"): (0, 1110, 1),
        ("g", "f", "work"): (1110,) * 2 + (1,),
    }


@given(TREES)
def test_all_is_there_once(stacks: dict[Stack, int]) -> None:
    profile = profile_of(stacks)
    calls = merged_calls([profile], OWN)
    whole = int(profile.row_costs().insns.sum())
    assert calls.total == whole
    assert sum(calls.inclusive[root] for root in calls.roots()) == whole
    for line in called_profile(profile).lines:
        key: Key = (line.origin, line.name)
        up = callers(calls, key)
        assert up.total == line.inclusive
        assert line.inclusive is not None
        assert line.cost.insns <= line.inclusive <= whole
        nodes = [node for node in range(len(calls)) if calls.key[node] == key]
        assert sum(calls.own[node] for node in nodes) == line.cost.insns
        outermost = [node for node in nodes if key not in calls.path(node)[:-1]]
        assert sum(calls.inclusive[node] for node in outermost) == line.inclusive


@given(TREES, st.floats(0, 1))
def test_what_is_shown(stacks: dict[Stack, int], part: float) -> None:
    calls = merged_calls([profile_of(stacks)], OWN)
    shown = list(shown_calls(calls, part))
    kept = [one for one in shown if not one.cut]
    assert [one.depth for one in shown if one.key[0] == TASK] == [0] * bool(calls.total)
    assert all(one.inclusive >= part * calls.total for one in shown)
    assert sum(one.own for one in kept) + sum(one.inclusive for one in shown if one.cut) <= (
        calls.total
    )
    if part == 0:
        assert sum(one.own for one in shown) == calls.total


@pytest.mark.parametrize("part", [0.0, 0.2])
def test_the_order(part: float) -> None:
    shown = list(shown_calls(merged_calls([read()], OWN), part))
    first = [(one.depth, one.is_branch, one.key[1]) for one in shown]
    if part:
        # 24 + 3 of 149 below main are less than a fifth, so each is the only one below the last.
        assert first == [
            (0, False, "work"),
            (0, False, "main"),
            (0, False, "call"),
            (0, False, "do_syscall_64"),
            (0, False, "vfs_read"),
        ]
        return
    assert first == [
        (0, False, "work"),
        (0, False, "main"),
        (1, True, "call"),
        (1, False, "do_syscall_64"),
        (1, False, "vfs_read"),
        (1, True, "do_syscall_64"),
        (1, False, "vfs_read"),
        (1, False, "read"),
    ]
