# SPDX-License-Identifier: GPL-2.0-or-later
"""The plugin's rules against the symbols of a kernel: which addresses are entries, and of what."""

import subprocess
from pathlib import Path

import pytest

from kdelta.host.native import native_folder
from kdelta.machines.arch import arch_machine

from .conftest import HERE, SANITIZERS, compile_c

# enum block_flags of block.h, and enum event of symbols.h.
INTERRUPT, EXCEPTION, FAULT, EVENT, PAGE_FAULT = 1, 2, 4, 8, 0x20
NEVER_A_FETCH, TRAP, EITHER, STUB = 0x40, 0x80, 0x100, 0x200
ANY_FAULT = EXCEPTION | FAULT | PAGE_FAULT
STARTS, RESUMES, SIGNALLED, IS_INTERRUPT = 2, 3, 6, 7
SIGRETURN, SYSTEM_CALL = 10, 11

ARM = """\
c0300000 T _stext
c03000ac T __entry_text_start
c0300158 T ret_from_fork
c03001e0 T vector_swi
c03012a8 T __switch_to
c03012fc T __entry_text_end
c035f050 T get_signal
c0360000 t finish_task_switch.isra.0
c128aae8 T _einittext
bf000000 t something\t[module]
"""
ARM64 = """\
ffff800008010000 T _stext
ffff8000080101f8 T __entry_text_start
ffff800008010800 T vectors
ffff800008012800 T __bp_harden_el1_vectors
ffff800008014340 T __entry_text_end
ffff800008016640 T cpu_switch_to
ffff8000080166bc T ret_from_fork
ffff8000080adef4 T get_signal
ffff800009500000 B _end
"""
RISCV = """\
ffffffff80002000 T _stext
ffffffff80b00000 T handle_exception
ffffffff80b00400 T __switch_to
ffffffff80b00480 T other
ffffffff80b10000 t do_irq
ffffffff81600000 B _end
"""
CALLS = """\
ffffffff81000000 T _stext
ffffffff81001000 T __x64_sys_write
ffffffff81001040 t __do_sys_write
ffffffff81001080 T __x64_sys_rt_sigreturn
ffffffff810010c0 T x64_sys_call
ffffffff81001100 T __ia32_compat_sys_ioctl
ffffffff81c00000 T __switch_to_asm
ffffffff82000000 B _end
"""
KERNEL_MODE = """\
ffffffff81000000 T _stext
ffffffff81a00000 T __entry_text_start
ffffffff81a00100 T asm_exc_page_fault
ffffffff81a00200 T kernel_mode_vectors
ffffffff81a01200 t kernel_mode_interrupt
ffffffff81a01300 T kernel_mode_nmi
ffffffff81a01320 T kernel_mode_debug
ffffffff81a01340 T asm_exc_nmi
ffffffff81b00000 T kernel_mode_call
ffffffff81c00000 T __switch_to_asm
ffffffff82000000 B _end
"""


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plugin = native_folder() / "plugin"
    output = tmp_path_factory.mktemp("symbols") / "symbols"
    return compile_c(output, [HERE / "symbols.c", plugin / "symbols.c"], f"-I{plugin}", *SANITIZERS)


def told(
    program: Path, folder: Path, arch: str, symbols: str, *addresses: int
) -> tuple[str, list[tuple[int, int, int, int]]]:
    """The first line, and by address: flags, event, in the switch, in the return text."""
    (folder / "rules").write_text(arch_machine(arch).rules())
    (folder / "symbols").write_text(symbols)
    argv = [str(program), str(folder / "rules"), str(folder / "symbols"), *map(hex, addresses)]
    first, *rest = subprocess.run(
        argv, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    rows = [line.split() for line in rest]
    return first, [(int(row[0], 16), int(row[1]), int(row[2]), int(row[3])) for row in rows]


def test_an_arm_kernel_is_entered_by_its_vectors(program: Path, tmp_path: Path) -> None:
    vectors = (0xFFFF0004, 0xFFFF0008, 0xFFFF000C, 0xFFFF0010, 0xFFFF0018, 0xFFFF0019)
    first, found = told(program, tmp_path, "arm", ARM, *vectors)
    assert first == "1 1 c0300000 c128aae8"
    assert [flags for flags, _, _, _ in found] == [
        EXCEPTION, 0, EXCEPTION, EXCEPTION | FAULT | NEVER_A_FETCH, INTERRUPT, 0,
    ]  # fmt: skip


def test_functions_that_matter_and_their_ends(program: Path, tmp_path: Path) -> None:
    places = (0xC03012A8, 0xC03012F8, 0xC03012FC, 0xC0300158, 0xC0360000, 0xC035F050, 0xC03000A8)
    _, found = told(program, tmp_path, "arm", ARM, *places)
    assert found == [
        (0, 0, 1, 1), (0, 0, 1, 1), (0, 0, 0, 0), (EVENT, STARTS, 0, 1), (EVENT, RESUMES, 0, 0),
        (EVENT, SIGNALLED, 0, 0), (0, 0, 0, 0),
    ]  # fmt: skip


def test_functions_of_system_calls(program: Path, tmp_path: Path) -> None:
    places = [0xFFFFFFFF81001000 + 0x40 * number for number in range(5)]
    _, found = told(program, tmp_path, "x86_64", CALLS, *places)
    # The return from a handler is a system call, too, and is known by the more special event.
    assert [(flags, event) for flags, event, _, _ in found] == [
        (EVENT, SYSTEM_CALL), (0, 0), (EVENT, SIGRETURN), (0, 0), (EVENT, SYSTEM_CALL),
    ]  # fmt: skip


def test_an_arm64_kernel_is_entered_by_a_table(program: Path, tmp_path: Path) -> None:
    tables = (0xFFFF800008010800, 0xFFFF800008012800, 0xFFFF800008013800)
    offsets = (0x200, 0x280, 0x400, 0x480, 0x484)
    places = [table + offset for table in tables for offset in offsets]
    first, found = told(program, tmp_path, "arm64", ARM64, *places)
    assert first == "1 1 ffff800008010000 ffff800009500000"
    row = [ANY_FAULT | TRAP, INTERRUPT, ANY_FAULT | TRAP, INTERRUPT, 0]
    assert [flags for flags, _, _, _ in found] == row * len(tables)


def test_stubs_of_a_kernel_with_kernel_mode(program: Path, tmp_path: Path) -> None:
    vectors = 0xFFFFFFFF81A00200
    numbers = (0, 3, 6, 10, 13, 14, 16, 17, 32, 255)
    places = [vectors + 16 * number for number in numbers]
    more = (vectors + 2, 0xFFFFFFFF81A01200, 0xFFFFFFFF81A01300, 0xFFFFFFFF81A01320)
    last = (0xFFFFFFFF81A01340, 0xFFFFFFFF81A00100, 0xFFFFFFFF81B00000)
    first, found = told(program, tmp_path, "x86_64", KERNEL_MODE, *places, *more, *last)
    assert first == "1 1 ffffffff81000000 ffffffff82000000"
    arithmetic, fault = EXCEPTION | FAULT | NEVER_A_FETCH, EXCEPTION | FAULT
    assert [flags for flags, _, _, _ in found] == [
        *(kind | STUB for kind in (
            arithmetic, EXCEPTION, EXCEPTION, fault, fault, ANY_FAULT, arithmetic, fault, INTERRUPT,
            INTERRUPT, 0,
        )),
        0, INTERRUPT | STUB, EXCEPTION | STUB,
        INTERRUPT | EXCEPTION, ANY_FAULT, 0,
    ]  # fmt: skip


def test_a_riscv_kernel_has_one_entry(program: Path, tmp_path: Path) -> None:
    places = (0xFFFFFFFF80B00000, 0xFFFFFFFF80B10000, 0xFFFFFFFF80B00440)
    first, found = told(program, tmp_path, "riscv64", RISCV, *places)
    assert first == "1 1 ffffffff80002000 ffffffff81600000"
    # Without symbols of the entry text any return may end a frame.
    assert found == [
        (ANY_FAULT | TRAP | EITHER, 0, 0, 1),
        (EVENT, IS_INTERRUPT, 0, 1),
        (0, 0, 1, 1),
    ]


def test_rules_that_nothing_knows_are_refused(program: Path, tmp_path: Path) -> None:
    (tmp_path / "rules").write_text("interruption vector_irq\n")
    (tmp_path / "symbols").write_text(ARM)
    argv = [str(program), str(tmp_path / "rules"), str(tmp_path / "symbols")]
    said = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert said.returncode == 1
    assert "cannot use the rules" in said.stderr
