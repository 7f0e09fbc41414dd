# SPDX-License-Identifier: GPL-2.0-or-later
"""Who called a function: known where its direct calls are all of its entries, and are by one."""

import struct
from pathlib import Path

import pytest

from kdelta.counts.raw import Sources
from kdelta.counts.reader import read_counts
from tests.counts.test_profile_file import BASE, chunk

A, B, C = (BASE + 0x100 * n for n in range(3))
FUNCTIONS = {"a": A, "b": B, "near": B + 0x40, "c": C}
RETURN = b"\xc3"

Code = tuple[int, bytes, int, int]
"""Address, bytes, how many instructions these are, and how often they were executed."""


def call(address: int, target: int, opcode: int = 0xE8) -> bytes:
    """A nop, and a direct call (or a jump) by x86-64's 5 bytes."""
    return b"\x90" + bytes([opcode]) + struct.pack("<i", target - (address + 6))


def counted(folder: Path, *blocks: Code) -> dict[str, tuple[int, str]]:
    """How often each function was called, and by which one alone, of a region of these blocks."""
    code = b"".join(
        struct.pack("<IIQII", at, len(text), address, 0, 1)
        + struct.pack("<HHH6B", insns, *[0] * 8)
        + text
        for at, (address, text, insns, _) in enumerate(blocks)
    )
    insns = sum(n * times for _, _, n, times in blocks)
    region = struct.pack("<I", 1) + b"r" + struct.pack("<QQ4Q", 0, 0, 0, insns, 0, 0)
    for at, (_, _, _, times) in enumerate(blocks):
        region += struct.pack("<IIQQQQ", at, 0, times, 0, 0, 0)
    content = chunk(b"HEAD", struct.pack("<I", 1) + b"\0") + chunk(b"BLKS", code)
    content += chunk(b"REGN", region) + chunk(b"END ", b"")
    (folder / "counts").write_bytes(content)
    symbols = "".join(f"{at:x} T {name}\n" for name, at in FUNCTIONS.items())
    (folder / "symbols").write_text(symbols)
    (found,) = read_counts(folder / "counts", Sources(folder / "symbols")).regions
    return {one.name: (one.calls, one.caller) for one in found.functions}


def test_one_function_calls_it_each_time(tmp_path: Path) -> None:
    found = counted(tmp_path, (A, call(A, B), 2, 7), (B, RETURN, 1, 7))
    assert found == {"a": (7, ""), "b": (7, "a")}


def test_two_functions_call_it(tmp_path: Path) -> None:
    blocks = (A, call(A, C), 2, 7), (B, call(B, C), 2, 1), (C, RETURN, 1, 8)
    assert counted(tmp_path, *blocks)["c"] == (8, "")


def test_a_call_that_is_not_direct_leaves_it_open(tmp_path: Path) -> None:
    blocks = (A, call(A, B), 2, 7), (B, RETURN, 1, 8)
    assert counted(tmp_path, *blocks)["b"] == (8, "")


def test_code_in_the_middle_is_no_entry(tmp_path: Path) -> None:
    blocks = (A, call(A, B), 2, 7), (B, RETURN, 1, 7), (B + 8, RETURN, 1, 100)
    assert counted(tmp_path, *blocks)["b"] == (7, "a")


@pytest.mark.parametrize("jump", [call(B, B + 0x40, 0xE9), b"\x90\xeb\x3d"])
def test_what_only_jumps_there_is_passed_through(tmp_path: Path, jump: bytes) -> None:
    found = counted(tmp_path, (A, call(A, B), 2, 7), (B, jump, 2, 7), (B + 0x40, RETURN, 1, 7))
    assert found["b"] == (7, "a")
    assert found["near"] == (7, "a")


def test_a_tail_call_of_more_than_a_jump_is_a_call(tmp_path: Path) -> None:
    blocks = (A, call(A, B), 2, 7), (B, call(B, C, 0xE9), 3, 7), (C, RETURN, 1, 7)
    assert counted(tmp_path, *blocks)["c"] == (7, "b")


@pytest.mark.parametrize(
    ("arch", "word"),
    [
        ("arm64", 0b100101 << 26 | 0x100 >> 2),
        ("arm", 0xEB << 24 | (0x100 - 8) >> 2),
        ("riscv64", 0x100 >> 1 << 21 | 1 << 7 | 0b1101111),
    ],
)
def test_other_architectures(tmp_path: Path, arch: str, word: int) -> None:
    blocks = (A, word.to_bytes(4, "little"), 1, 3), (B, RETURN, 1, 3)
    assert counted(tmp_path, *blocks)["b"] == (3, "a"), arch
