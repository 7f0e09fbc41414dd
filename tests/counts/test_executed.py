# SPDX-License-Identifier: GPL-2.0-or-later
"""Which functions were executed, from the addresses that were translated."""

import os
import shutil
import struct
from pathlib import Path

import pytest

from kdelta.counts.executed import (
    Executed,
    decode_executed,
    encode_executed,
    executed_since_boot,
)
from kdelta.counts.symbols import Symbol, parse_kallsyms
from kdelta.machines.arch import arch_machine
from kdelta.spec.errors import LabError

BASE = 0xFFFFFFFF81000000
MODULE = 0xFFFFFFFFC0000000
SYMBOLS = [
    (BASE, "T", "startup", "kernel"),
    (BASE + 0x100, "t", "first", "kernel"),
    (BASE + 0x140, "t", "second", "kernel"),
    (BASE + 0x140, "T", "alias", "kernel"),
    (BASE + 0x180, "t", "third", "kernel"),
    (MODULE, "t", "first", "[module]"),
    (MODULE + 0x40, "t", "last", "[module]"),
]


def seen(path: Path, *blocks: tuple[int, int], complete: bool = True) -> Path:
    def chunk(tag: bytes, payload: bytes) -> bytes:
        return struct.pack("<4sIQ", tag, 0, len(payload)) + payload

    rows = [struct.pack("<QI", address, size) for address, size in blocks]
    content = chunk(b"SEEN", b"".join(rows[:1])) + chunk(b"SEEN", b"".join(rows[1:]))
    path.write_bytes(content + (chunk(b"END ", b"") if complete else b""))
    return path


def listed(rows: list[Symbol]) -> str:
    """Lines as in /proc/kallsyms."""
    names = [f"{name}\t{of}" if of.startswith("[") else name for _, _, name, of in rows]
    return "".join(f"{row[0]:x} {row[1]} {name}\n" for row, name in zip(rows, names, strict=True))


def executed(
    files: list[Path], rows: list[Symbol] = SYMBOLS, arch: str = "x86_64", cpu: str = ""
) -> Executed:
    machine = arch_machine(arch)
    symbols = files[0].with_name(f"{files[0].name}.symbols")
    symbols.write_text(listed(rows))
    return executed_since_boot(files, symbols, b"", (machine.image, machine.board(cpu).image))


@pytest.mark.parametrize(
    ("block", "names"),
    [
        ((BASE + 0x100, 0x40), {("kernel", "first")}),
        ((BASE + 0x13F, 1), {("kernel", "first")}),
        ((BASE + 0x13F, 2), {("kernel", "first"), ("kernel", "second"), ("kernel", "alias")}),
        ((BASE + 0x140, 1), {("kernel", "second"), ("kernel", "alias")}),
        ((0x1000100, 4), {("kernel", "first")}),
        ((0x400000, 4), set()),
        ((0x7F0000001000, 4), set()),
        ((0x40000000 + 0x1000100, 4), set()),
        ((BASE - 0x1000, 4), set()),
        ((MODULE + 0x10, 4), {("[module]", "first")}),
        ((MODULE + 0x4000, 4), {("[module]", "last")}),
    ],
)
def test_block_is_of_every_function_that_it_touches(
    tmp_path: Path, block: tuple[int, int], names: set[tuple[str, str]]
) -> None:
    assert executed([seen(tmp_path / "boot", block)]).functions == names


# A kernel's first text symbol and a later one, a module's, and what is executed of them: at their
# addresses, and before the MMU is on at those where the image lies in memory.
PLACES = [
    ("arm", "cortex-a9", 0xC0008000, 0xBF000000, 0x60008000, 0x3F000000),
    ("arm", "cortex-a9", 0x80300000, 0x7F000000, 0x60300000, 0x7E000000),
    ("arm", "cortex-a15", 0xC0300000, 0xBF000000, 0x40300000, 0x60300000),
    ("arm64", "", 0xFFFF800008010000, 0xFFFF800001000000, 0x40210000, 0x400000),
    ("riscv64", "", 0xFFFFFFFF80002000, 0xFFFFFFFF01000000, 0x80202000, 0x400000),
]


@pytest.mark.parametrize(("name", "cpu", "text", "module", "early", "user"), PLACES)
def test_kernels_of_other_architectures(  # noqa: PLR0917 (a row of a table)
    tmp_path: Path, name: str, cpu: str, text: int, module: int, early: int, user: int
) -> None:
    symbols = [
        (text, "T", "_stext", "kernel"),
        (text + 0x100, "t", "first", "kernel"),
        (text + 0x200, "t", "second", "kernel"),
        (text + 0x300, "t", "never", "kernel"),
        (module, "t", "first", "[module]"),
    ]
    blocks = ((text + 0x110, 8), (early + 0x204, 4), (module, 4), (user, 4))
    found = executed([seen(tmp_path / "boot", *blocks)], symbols, name, cpu)
    assert found.functions == {("kernel", "first"), ("kernel", "second"), ("[module]", "first")}


def test_an_arm_kernels_vectors_have_names() -> None:
    names = {name: address for address, _, name, _ in parse_kallsyms(arch_machine("arm").unnamed())}
    assert names == {
        "vectors": 0xFFFF0000, "kuser_helpers": 0xFFFF0F00, "vector_stubs": 0xFFFF1000,
    }  # fmt: skip
    assert arch_machine("x86_64").unnamed() == b""


def test_boot_and_runs_add_up(tmp_path: Path) -> None:
    files = [
        seen(tmp_path / "boot", (BASE, 4), (BASE + 0x180, 4), (BASE + 0x184, 4)),
        seen(tmp_path / "counts", (BASE + 0x110, 4)),
    ]
    found = executed(files)
    assert found.names() == {"startup", "first", "third"}
    assert found == executed(files[:1]) | executed(files[1:])


def test_what_is_kept_of_a_boot_is_what_is_read_again(tmp_path: Path) -> None:
    arch = arch_machine("x86_64")
    board = arch.image, arch.boards[0].image
    symbols = tmp_path / "symbols"
    symbols.write_text(listed(SYMBOLS[:5]))
    modules = listed(SYMBOLS[5:])
    boot = seen(tmp_path / "boot", (BASE, 4), (0x1000180, 4), (MODULE + 0x40, 4))
    runs = [
        seen(tmp_path / "one", (BASE + 0x110, 4)),
        seen(tmp_path / "two", (BASE + 0x140, 4), (MODULE, 1)),
    ]
    for text, names in ((modules, SYMBOLS), ("", SYMBOLS[:5])):
        for number, run in enumerate((*runs, *runs)):
            found = executed_since_boot([boot, run], symbols, text.encode(), board)
            copy = Path(shutil.copy(boot, tmp_path / f"{len(names)}-{number}"))
            assert found == executed([copy, run], names)
    seen(boot, (BASE + 0x13F, 2), (BASE, 4), (BASE, 4), (BASE, 4))
    found = executed_since_boot([boot, runs[0]], symbols, b"", board)
    assert found.names() == {"startup", "first", "second", "alias"}
    symbols.write_text(symbols.read_text().replace("startup", "begin"))
    os.utime(symbols, ns=(1, 1))
    assert "begin" in executed_since_boot([boot], symbols, b"", board).names()


def test_cut_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="cut short"):
        executed([seen(tmp_path / "boot", (BASE, 4), complete=False)])


def test_text_form(tmp_path: Path) -> None:
    found = executed([seen(tmp_path / "b", (BASE + 0x13F, 2), (MODULE, 1))])
    text = encode_executed(found)
    assert text == b"[module] first\nkernel alias\nkernel first\nkernel second\n"
    assert decode_executed(text) == found
    assert decode_executed(encode_executed(Executed(frozenset()))) == Executed(frozenset())
    for damaged in (b"kernel\n", b"a b c\n", b"\xff\n"):
        with pytest.raises(LabError):
            decode_executed(damaged)
