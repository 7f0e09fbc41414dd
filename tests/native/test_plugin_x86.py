# SPDX-License-Identifier: GPL-2.0-or-later
"""What the plugin reads from the bytes of x86-64 instructions, checked by a table and objdump."""

from pathlib import Path

import pytest

from tests.native.real_code import LIBC

from .att import accesses, jumps, parse, special
from .classifying import X86, Insn, assembled, classify, disassembled

KERNEL_TEXT = 0xFFFFFFFF81000000
KERNEL_TEXT_BYTES = 2 << 20

# Assembly, and what the plugin has to say of it: special, loads, stores.
TABLE = [
    ("syscall", "syscall", 0, 0), ("sysretq", "sysret", 0, 0), ("sysretl", "sysret", 0, 0),
    ("sysenter", "sysenter", 0, 0), ("sysexit", "sysexit", 0, 0), ("iretq", "iret", 1, 0),
    ("int3", "int", 0, 0), ("int $0x80", "int", 0, 0), ("swapgs", "swapgs", 0, 0),
    ("rdmsr", "rdmsr", 0, 0), ("wrmsr", "wrmsr", 0, 0), ("mov %cr3,%rax", "mov-cr", 0, 0),
    ("mov %rax,%cr3", "write-cr3", 0, 0), ("mov %r9,%cr3", "write-cr3", 0, 0),
    ("mov %r11,%cr8", "mov-cr", 0, 0),
    ("mov %rax,%cr4", "mov-cr", 0, 0), ("clts", "mov-cr", 0, 0), ("mov %rax,%dr7", "mov-dr", 0, 0),
    ("mov %dr6,%r11", "mov-dr", 0, 0), ("invlpg (%rax)", "invlpg", 0, 0),
    ("invpcid (%rax),%rbx", "invpcid", 1, 0), ("cpuid", "cpuid", 0, 0),
    ("verw (%rsp)", "verw", 1, 0), ("verw %ax", "verw", 0, 0), ("lock incl (%rax)", "lock", 1, 1),
    ("lock cmpxchg16b (%rdi)", "lock", 1, 1), ("xchg %eax,(%rdi)", "lock", 1, 1),
    ("xchg %eax,%ebx", "", 0, 0), ("pause", "pause", 0, 0), ("lfence", "lfence", 0, 0),
    ("mfence", "mfence", 0, 0), ("sfence", "sfence", 0, 0), ("xsave (%rdi)", "xsave", 0, 1),
    ("xsaveopt64 (%rdi)", "xsave", 0, 1), ("xsavec (%rdi)", "xsave", 0, 1),
    ("xsaves64 (%rdi)", "xsave", 0, 1), ("fxsave (%rdi)", "xsave", 0, 1),
    ("xrstor (%rdi)", "xrstor", 1, 0), ("xrstors64 (%rdi)", "xrstor", 1, 0),
    ("fxrstor64 (%rdi)", "xrstor", 1, 0), ("mov %eax,%ds", "segment-load", 0, 0),
    ("mov (%rax),%gs", "segment-load", 1, 0), ("pop %fs", "segment-load", 1, 0),
    ("mov %ds,%eax", "", 0, 0), ("lgdt (%rax)", "lgdt", 1, 0), ("lidt (%rax)", "lidt", 1, 0),
    ("sgdt (%rax)", "", 0, 1), ("lldt %ax", "lldt", 0, 0), ("ltr %ax", "ltr", 0, 0),
    ("wrfsbase %rax", "wrfsbase", 0, 0), ("wrgsbase %rax", "wrgsbase", 0, 0),
    ("rdfsbase %rax", "", 0, 0), ("rdtsc", "rdtsc", 0, 0), ("rdtscp", "rdtsc", 0, 0),
    ("rdpmc", "rdpmc", 0, 0), ("clflush (%rax)", "clflush", 0, 0),
    ("clflushopt (%rax)", "clflush", 0, 0), ("clwb (%rax)", "clflush", 0, 0),
    ("monitor", "monitor", 0, 0), ("mwait", "mwait", 0, 0), ("lretq", "far-transfer", 1, 0),
    ("ljmp *(%rax)", "far-transfer", 1, 0), ("hlt", "hlt", 0, 0), ("in %dx,%al", "in", 0, 0),
    ("out %eax,$0x80", "out", 0, 0), ("rep insb", "in", 0, 1), ("outsl", "out", 1, 0),
    ("wbinvd", "wbinvd", 0, 0), ("xsetbv", "xsetbv", 0, 0), ("rdrand %rax", "rdrand", 0, 0),
    ("stac", "stac-clac", 0, 0), ("cli", "cli-sti", 0, 0), ("sti", "cli-sti", 0, 0),
    ("nop", "", 0, 0), ("nopl 0x10(%rax)", "", 0, 0), ("endbr64", "", 0, 0),
    ("lea 8(%rax),%rbx", "", 0, 0), ("prefetcht0 (%rax)", "", 0, 0), ("push %rax", "", 0, 1),
    ("push (%rax)", "", 1, 1), ("pop %rax", "", 1, 0), ("pop (%rax)", "", 1, 1),
    ("call *%rax", "", 0, 1), ("call *(%rax)", "", 1, 1), ("jmp *(%rax)", "", 1, 0),
    ("ret", "", 1, 0), ("leave", "", 1, 0), ("add %eax,(%rbx)", "", 1, 1),
    ("cmp %eax,(%rbx)", "", 1, 0), ("test %eax,(%rbx)", "", 1, 0), ("sete (%rax)", "", 0, 1),
    ("movzbl (%rax),%eax", "", 1, 0), ("cmovne (%rax),%eax", "", 1, 0), ("notl (%rax)", "", 1, 1),
    ("divl (%rax)", "", 1, 0), ("movups %xmm0,(%rax)", "", 0, 1), ("pxor (%rax),%xmm0", "", 1, 0),
    ("vmovdqu %ymm0,(%rax)", "", 0, 1), ("pextrd $1,%xmm0,(%rax)", "", 0, 1), ("ud2", "", 0, 0),
]  # fmt: skip
FAULTS = ("div %ecx", "idivl (%rax)", "fwait", "fld1", "ud2", "in %dx,%al", "mov %ax,%fs", "ret")
CANNOT_FAULT = (
    "add %eax,%ebx",
    "jne .",
    "jmp .",
    "jmp *%rax",
    "lea (%rax),%rbx",
    "nop",
    "bswap %eax",
)
PRIVILEGED = ("hlt", "cli", "rdmsr", "lgdt (%rax)", "invlpg (%rax)", "mov %cr0,%rax", "int $0x21")
# string operation: loads, stores, bytes an element, whether it repeats as one instruction
STRINGS = {
    "rep movsb": (1, 1, 1, 1), "rep movsq": (1, 1, 8, 1), "movsl": (1, 1, 4, 0),
    "rep stosw": (0, 1, 2, 1), "lodsb": (1, 0, 1, 0), "repne scasb": (1, 0, 1, 0),
    "repe cmpsb": (2, 0, 1, 0), "repe cmpsl": (2, 0, 4, 0),
}  # fmt: skip


def disagreements(insns: list[Insn]) -> tuple[list[str], int]:
    """Where the plugin and objdump's text differ, and how many could be compared."""
    wrong, compared = [], 0
    for insn, facts in zip(insns, classify(X86, (i.code for i in insns)), strict=True):
        if "(bad)" in insn.text:
            continue
        words = parse(insn.text)
        if not words[1]:
            continue
        got: tuple[object, ...] = (facts.special, facts.jumps)
        want: tuple[object, ...] = (special(*words), jumps(*words[:2]))
        if (known := accesses(*words[1:])) is not None:
            got += (facts.loads, facts.stores)
            want += known
            compared += 1
        if got != want:
            wrong.append(f"{insn.code.hex()}  {insn.text.strip()}: plugin {got}, objdump {want}")
        elif facts.loads + facts.stores and not facts.can_fault:
            wrong.append(f"{insn.code.hex()}  {insn.text.strip()}: accesses but cannot fault")
    return wrong, compared


@pytest.mark.slow
def test_the_c_librarys_code_is_read_as_objdump_reads_it() -> None:
    insns = disassembled(X86, LIBC)
    wrong, compared = disagreements(insns)
    assert wrong == []
    assert compared > 0.97 * len(insns) > 50_000


@pytest.mark.slow
@pytest.mark.network
def test_a_kernels_code_is_read_as_objdump_reads_it(tmp_path: Path) -> None:
    from tests.machines.bench import NEW, kernel
    from tests.studies.known_change import extract_vmlinux

    extract_vmlinux(Path(kernel(NEW).image), tmp_path / "vmlinux")
    insns = disassembled(
        X86,
        tmp_path / "vmlinux",
        f"--start-address={KERNEL_TEXT}",
        f"--stop-address={KERNEL_TEXT + KERNEL_TEXT_BYTES}",
    )
    wrong, compared = disagreements(insns)
    assert wrong == []
    assert compared > 0.97 * len(insns) > 50_000
    assert {f.special for f in classify(X86, (i.code for i in insns))} >= {
        "", "wrmsr", "mov-cr", "cpuid", "lock", "pause", "cli-sti",
    }  # fmt: skip


DETAILS = [
    ("wrmsr", "rcx=0x49 rax=1", "wrmsr PRED_CMD (IBPB)"),
    ("wrmsr", "rcx=0x49 rax=0x80", "wrmsr PRED_CMD (SBPB)"),
    ("wrmsr", "rcx=0x49 rax=0", "wrmsr PRED_CMD"),
    ("wrmsr", "rcx=0xffffffff00000048 rax=1", "wrmsr SPEC_CTRL"),
    ("wrmsr", "rcx=0x10b rax=1", "wrmsr FLUSH_CMD (L1D)"),
    ("wrmsr", "rcx=0xc0000101", "wrmsr GS_BASE"),
    ("wrmsr", "rcx=0x12345", "wrmsr 0x12345"),
    ("rdmsr", "rcx=0x49 rax=1", "rdmsr PRED_CMD"),
    ("in %dx,%eax", "rdx=0xabcd0608", "in 0x608"),
    ("out %al,$0x80", "rdx=0x608", "out 0x80"),
    ("outb %al,%dx", "rdx=0x3f8", "out 0x3f8"),
    ("mov %rax,%cr3", "rax=0x8000000000001000", "write-cr3 no-flush"),
    ("mov %r12,%cr3", "rax=0x8000000000001000 r12=0x1000", "write-cr3 flush"),
    ("mov %r12,%cr3", "r12=0x8000000000001000", "write-cr3 no-flush"),
    ("mov %cr3,%rax", "", "mov-cr read CR3"),
    ("mov %rax,%cr4", "", "mov-cr write CR4"),
    ("mov %r11,%cr8", "", "mov-cr write CR8"),
    ("clts", "", "mov-cr clts"),
    ("verw (%rsp)", "", "verw"),
]


@pytest.mark.parametrize(("text", "registers", "kind"), DETAILS)
def test_which_of_its_kind_an_instruction_is_by_bytes_and_registers(
    tmp_path: Path, text: str, registers: str, kind: str
) -> None:
    (found,) = classify(X86, assembled(X86, tmp_path, [text]), registers)
    assert f"{found.special} {found.detail}".rstrip() == kind


def test_the_table(tmp_path: Path) -> None:
    found = classify(X86, assembled(X86, tmp_path, (row[0] for row in TABLE)))
    rows = zip(TABLE, found, strict=True)
    got = [(row[0], facts.special, facts.loads, facts.stores) for row, facts in rows]
    assert got == TABLE
    assert not [row[0] for row, facts in zip(TABLE, found, strict=True) if facts.mark]


def test_what_can_fault_and_what_cannot(tmp_path: Path) -> None:
    found = classify(X86, assembled(X86, tmp_path, (*FAULTS, *CANNOT_FAULT)))
    assert [facts.can_fault for facts in found] == [1] * len(FAULTS) + [0] * len(CANNOT_FAULT)


def test_which_instructions_are_counted_though_they_are_not_allowed(
    tmp_path: Path,
) -> None:
    found = classify(X86, assembled(X86, tmp_path, (*PRIVILEGED, *FAULTS)))
    assert [facts.trap_counts for facts in found] == [1] * len(PRIVILEGED) + [0] * len(FAULTS)


def test_string_operations(tmp_path: Path) -> None:
    found = classify(X86, assembled(X86, tmp_path, STRINGS))
    assert all(facts.is_string and facts.can_fault for facts in found)
    got = [(facts.loads, facts.stores, facts.element_bytes, facts.repeats) for facts in found]
    assert dict(zip(STRINGS, got, strict=True)) == STRINGS


def test_marks_and_bytes() -> None:
    marks = [bytes([0x0F, 0x1F, 0x80, kind, 0, 0x64, 0x4B]) for kind in range(11)]
    found = classify(X86, marks)
    assert [facts.mark for facts in found] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0]
    (byte,) = classify(X86, [bytes.fromhex("0fb68800 10644b")])
    assert (byte.argument, byte.loads, byte.stores, byte.mark) == (1, 1, 0, 0)
    (other,) = classify(X86, [bytes.fromhex("0fb69800 10644b")])
    assert (other.argument, other.loads) == (0, 1)


def test_calls_of_functions_and_returns(tmp_path: Path) -> None:
    calls = ("call .", "call *%rax", "call *%r11", "call *8(%rsp)", "notrack call *%rdx")
    returns = ("ret", "ret $16", "repz ret", ".byte 0xf2, 0xc3")  # bnd ret
    neither = (
        "jmp .",
        "jmp *%rax",
        "lcall *(%rax)",
        "lret",
        "iretq",
        "sysretq",
        "syscall",
        "push %rax",
    )
    codes = assembled(X86, tmp_path, (*calls, *returns, *neither))
    got = [(facts.calls_function, facts.returns) for facts in classify(X86, codes)]
    assert got == [(1, 0)] * len(calls) + [(0, 1)] * len(returns) + [(0, 0)] * len(neither)


def test_instructions_that_are_cut_short_do_no_harm(tmp_path: Path) -> None:
    """QEMU shows the start of an instruction that goes on in the next page."""
    whole = assembled(X86, tmp_path, (row[0] for row in TABLE))
    parts = [code[:size] for code in whole for size in range(len(code))]
    assert len(classify(X86, parts)) == len(parts)
