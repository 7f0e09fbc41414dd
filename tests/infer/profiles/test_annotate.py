# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions instruction by instruction, alone and side by side."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.counts.disassembly import Block
from kdelta.infer.profiles.annotate import (
    AnnotatedFunction,
    Insn,
    annotated,
    likeness,
    plain_text,
    side_by_side,
)
from kdelta.infer.profiles.profile import Selection
from tests.profiles import FUNCTION_BYTES, profile_of

OWN = Selection()
PROFILE = profile_of({("main",): 10, ("main", "f"): 5, ("irq", "f"): 7}, contexts={("irq",): 1})
AT = 2 * FUNCTION_BYTES


def nops(blocks: Sequence[Block]) -> list[Mapping[int, str]]:
    assert [(block.code, block.sizes) for block in blocks] == [(b"\x90", (1,))] * len(blocks)
    return [{block.address: "nop"} for block in blocks]


def test_instructions_of_all_regions_and_paths() -> None:
    found = annotated([PROFILE, PROFILE], ("kernel", "f"), OWN, nops)
    assert found.insns == (Insn(AT, 1, 10, "nop"),)
    everything = Selection(contexts=("own", "interrupts", "other"))
    lines = {("kernel", AT): ("a.c", 3)}
    found = annotated([PROFILE], ("kernel", "f"), everything, nops, lambda o, a: lines.get((o, a)))
    assert found.insns == (Insn(AT, 1, 12, "nop", ("a.c", 3)),)
    assert found.total == 12
    assert annotated([PROFILE], ("kernel", "g"), OWN, lambda _: []).insns == ()


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("call ffffffff81001000 <vfs_read>", "call ffffffff81002000 <vfs_read>", True),
        ("call ffffffff81001000 <f.isra.0>", "call ffffffff81002000 <f>", True),
        ("call ffffffff81001000 <vfs_read>", "call ffffffff81001000 <vfs_write>", False),
        ("jne 1234 <f+0x40>", "jne 1234 <f+0x50>", True),
        ("mov 0x10(%rdi),%rax", "mov 0x18(%rdi),%rax", False),
        ("mov 0x1234f(%rip),%rax # 81 <a>", "mov 0x1f(%rip),%rax # 82 <b>", True),
        ("mov $0xffffffff81234567,%rdi", "mov $0xffffffff8aaaaaaa,%rdi", True),
        ("mov $0x10,%edi", "mov $0x20,%edi", False),
        ("nop", "ret", False),
        ("bl 80001000 <f>", "bl 80002000 <f>", True),
        ("ldr r0, [pc, #4] @ 8000 <f+0x4>", "ldr r0, [pc, #4] @ 9000 <f+0x4>", True),
    ],
)
def test_what_is_one_instruction(one: str, other: str, alike: bool) -> None:
    assert (likeness(one) == likeness(other)) is alike


def test_how_it_is_shown() -> None:
    assert plain_text("call ffffffff81001000 <vfs_read>", "f") == "call vfs_read"
    assert plain_text("jne ffffffff81001040 <f+0x40>", "f") == "jne +0x40"
    assert plain_text("jmp ffffffff81001000 <f>", "f") == "jmp +0x0"
    assert plain_text("b.ne 81001040 <g+0x40> // b.any", "f") == "b.ne g+0x40 // b.any"


def function(texts: Sequence[str], counts: int = 1) -> AnnotatedFunction:
    insns = tuple(Insn(4 * i, 4, counts + i, text) for i, text in enumerate(texts))
    return AnnotatedFunction(("kernel", "f"), insns)


TEXTS = st.lists(st.sampled_from(["nop", "ret", "push %rbx", "call 1 <g>"]), max_size=12)


@given(TEXTS, TEXTS)
def test_nothing_is_lost_side_by_side(a: list[str], b: list[str]) -> None:
    ours, theirs = function(a), function(b, 100)
    pairs = side_by_side([ours], [theirs])
    assert tuple(pair.a for pair in pairs if pair.a) == ours.insns
    assert tuple(pair.b for pair in pairs if pair.b) == theirs.insns
    for pair in pairs:
        assert pair.a or pair.b
        if pair.alike:
            assert pair.a
            assert pair.b
            assert likeness(pair.a.text) == likeness(pair.b.text)


def test_thirty_more() -> None:
    a = ["push %rbx", "call 1 <getname>", "mov %rax,%rbx", "call 2 <get_unused_fd_flags>", "ret"]
    b = [*a[:3], *["nop"] * 30, *a[3:]]
    pairs = side_by_side([function(a)], [function(b)])
    assert [bool(pair.a) for pair in pairs] == [True] * 3 + [False] * 30 + [True] * 2
    assert {pair.b.text for pair in pairs if pair.b and not pair.a} == {"nop"}


def test_parts_of_a_function_follow_each_other() -> None:
    pairs = side_by_side([function(["nop", "ret"])], [function(["nop"]), function(["ret"])])
    assert [pair.alike for pair in pairs] == [True, True]
