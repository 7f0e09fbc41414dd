# SPDX-License-Identifier: GPL-2.0-or-later
"""Executed bytes as text, on every architecture that guests have."""

import pytest

from kdelta.counts.disassembly import Block, disassembled

START = 0x8000_1000
# Each: some instructions, then a call 0x100 bytes on from the block's begin.
CODE = {
    # push %rbx; xor %eax,%eax; call +0x100
    "x86_64": ("53 31c0 e8 f8000000", (1, 2, 5), ["push %rbx", "xor %eax,%eax", "call"]),
    # mov r0, #1; bl +0x100 (0x100 - 4 - 8 is 61 words)
    "arm": ("0100a0e3 3d0000eb", (4, 4), ["mov r0, #1", "bl"]),
    # mov x0, #1; bl +0x100 (0xfc is 63 words)
    "arm64": ("200080d2 3f000094", (4, 4), ["mov x0, #0x1", "bl"]),
    # li a0,1; jal ra,+0xfe
    "riscv64": ("0545 ef00e00f", (2, 4), ["li a0,1", "jal"]),
}


def block(arch: str, address: int = START) -> Block:
    code, sizes, _ = CODE[arch]
    return Block(address, bytes.fromhex(code), sizes)


@pytest.mark.parametrize("arch", list(CODE))
def test_instructions_and_what_they_call(arch: str) -> None:
    (found,) = disassembled([block(arch)], [(START, "f"), (START + 0x100, "vfs_read.isra.0")], arch)
    _, sizes, texts = CODE[arch]
    starts = [START + sum(sizes[:i]) for i in range(len(sizes))]
    assert list(found) == starts
    shown = list(found.values())
    assert [one.split(" @ ")[0].split(" // ")[0] for one in shown[:-1]] == texts[:-1]
    assert shown[-1].split()[0] == texts[-1]
    assert shown[-1].endswith("<vfs_read.isra.0>")


def test_addresses_of_a_kernel() -> None:
    start = 0xFFFF_FFFF_8100_0000
    (found,) = disassembled([block("x86_64", start)], [(start + 0x100, "f")], "x86_64")
    assert found[start + 3] == f"call {start + 0x100:x} <f>"


def test_thumb_code() -> None:
    """movs r0, #1; bx lr"""
    (found,) = disassembled([Block(START, bytes.fromhex("01207047"), (2, 2))], [], "arm")
    assert list(found.values()) == ["movs r0, #1", "bx lr"]


def test_what_one_address_held_at_different_times() -> None:
    nop, jump = Block(START, bytes.fromhex("0f1f440000")), Block(START, bytes.fromhex("e9fb000000"))
    inside = Block(START + 1, bytes.fromhex("90"))
    found = disassembled([nop, jump, inside], [(START + 0x100, "f")], "x86_64")
    assert [list(one.values()) for one in found] == [
        ["nopl 0x0(%rax,%rax,1)"],
        [f"jmp {START + 0x100:x} <f>"],
        ["nop"],
    ]


def test_names_that_objdump_could_be_confused_by() -> None:
    odd = "$(reboot)\n<b>"
    (found,) = disassembled([block("x86_64")], [(START + 0x100, odd)], "x86_64")
    assert list(found.values())[2].split()[0] == "call"
    assert "reboot" not in "".join(found.values())


def test_nothing() -> None:
    assert disassembled([], [], "x86_64") == []
