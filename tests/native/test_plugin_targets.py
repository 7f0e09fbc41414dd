# SPDX-License-Identifier: GPL-2.0-or-later
"""What the plugin reads from the bytes of ARM, arm64 and RISC-V instructions, checked by tables and
objdump.
"""

import re
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from kdelta.host.emulator import NEWEST_API
from kdelta.host.native import native_folder
from kdelta.host.target import target as target_of
from tests.native.real_code import A32, REAL, T32, TARGETS, Real

from . import oracle_arm
from .classifying import Facts, Insn, Target, assembled, classify, disassembled
from .oracle_arm import Said

INSNS = Path(__file__).parent / "insns"
FILES = {"arm": ("arm-and-thumb", "arm"), "thumb": ("arm-and-thumb", "thumb")}
_ROW = re.compile(r"(.*?)\s+(\d+) (\d+)(?: (\S+))?$")
JUMPS = {
    "arm": (
        "b .", "beq .", "bl .", "bx lr", "blx r3", "mov pc, lr", "movs pc, lr", "ldr pc, [sp], #4",
        "pop {r4, pc}", "add pc, pc, r0", "svc #0", "ldmia sp, {r0-pc}^", "rfeia sp!", "udf #0",
    ),
    "thumb": (
        "b .", "b.w .", "bl .", "cbz r0, .+8", "bx lr", "mov pc, lr", "pop {pc}", "tbb [pc, r0]",
    ),
    "arm64": (
        "b .", "bl .", "br x0", "ret", "eret", "cbz x0, .", "tbz x0, #1, .", "b.ne .", "svc #0",
    ),
    "riscv64": (
        "j .", "jalr a0", "c.jr ra", "bnez a0, .", "ecall", "sret", "c.j .", "c.beqz a0, .",
    ),
}  # fmt: skip
ALWAYS_THERE = {
    "arm": ("push {r0, lr}", "pop {r4, pc}", "ldr r0, [sp, #4]", "ldr r0, [pc, #4]"),
    "thumb": ("push {r0, lr}", "pop {r4, pc}", "ldr r0, [sp, #4]", "ldr r0, [pc, #4]"),
    "arm64": ("stp x29, x30, [sp, #-16]!", "ldr x0, [sp, #8]", "ldr x0, ."),
    "riscv64": ("sd ra, 8(sp)", "c.ldsp ra, 8(sp)", "ld a0, 8(gp)"),
}
IN_DOUBT = {
    "arm": ("ldr r0, [r1]", "stmia r4, {r0-r7}", "ldrex r0, [sp]", "popne {r4}"),
    "thumb": ("ldr r0, [r1]", "ldrex r0, [sp]"),
    "arm64": ("ldr x0, [x1]", "stp x0, x1, [x2]", "ldxr x0, [sp]"),
    "riscv64": ("ld a0, 8(a1)", "c.ld a0, 8(a1)"),
}
# What saves and loads the stack of a task, in the kernel's function that switches.
SWITCHES = {
    "arm": (("stmia ip!, {r4-sl, fp, sp, lr}",), ("ldmia r4, {r4-sl, fp, sp, pc}",)),
    "thumb": (("stmia ip!, {r4-sl, fp}",), ("ldmia r4, {r4-sl, fp, ip, lr}",)),
    "arm64": (("stp x29, x9, [x8], #16",), ("ldp x29, x9, [x8], #16",)),
    "riscv64": (("sd sp, 8(a3)",), ("ld sp, 8(a4)",)),
}
MARKS = {
    "arm": [(0xE320F0C0 + kind).to_bytes(4, "little") for kind in range(11)],
    "thumb": [bytes([0xAF, 0xF3, 0xC0 + kind, 0x80]) for kind in range(11)],
    "arm64": [(0xD280001F | (0x4B60 + kind) << 5).to_bytes(4, "little") for kind in range(11)],
    "riscv64": [(0x3013 | (0x4B0 + kind) << 20).to_bytes(4, "little") for kind in range(11)],
}
BYTES = {
    "arm": "ldrb ip, [ip, #-0]",
    "thumb": ".inst.w 0xf81ccc00",
    "arm64": "ldurb wzr, [x7, #0x4b]",
    "riscv64": "lbu zero, 0x4b6(a3)",
}
NO_BYTES = {
    "arm": "ldrb ip, [ip]",
    "thumb": "ldrb.w ip, [ip]",
    "arm64": "ldurb w0, [x7, #0x4b]",
    "riscv64": "lbu a0, 0x4b6(a3)",
}


# Tables in Thumb code that objdump takes for code: coprocessors, and instructions of ARMv8-M.
_TABLES = ("mrc2", "mcr2", "cdp2", "bf", "stmia<und>", "ldrsh.w\tpc")


def disagreements(
    target: Target, oracle: Callable[[str], Said | None], insns: list[Insn]
) -> tuple[list[str], int]:
    """Where the plugin and objdump's text differ, and how many could be compared."""
    wrong, compared = [], 0
    for insn, facts in zip(insns, classify(target, (i.code for i in insns)), strict=True):
        said = oracle(insn.text)
        if said is None or insn.text.startswith(_TABLES):
            continue
        compared += 1
        got = (facts.special, facts.loads, facts.stores, bool(facts.jumps))
        most = 1 if facts.optional else 255
        want = (said.special, min(said.loads, most), min(said.stores, most), said.jumps)
        if got != want:
            wrong.append(f"{insn.code.hex()}  {insn.text}: plugin {got}, objdump {want}")
        elif (facts.loads or facts.stores or facts.special) and not facts.can_fault:
            wrong.append(f"{insn.code.hex()}  {insn.text}: cannot fault")
    return wrong, compared


@pytest.mark.slow
@pytest.mark.parametrize("real", REAL, ids=lambda real: real.target)
def test_a_c_librarys_code_is_read_as_objdump_reads_it(real: Real) -> None:
    target = TARGETS[real.target]
    insns = disassembled(target, *real.options, f"/usr/{real.library}/lib/libc.so.6")
    wrong, compared = disagreements(target, real.oracle, insns)
    assert wrong == []
    assert compared > 0.97 * len(insns) > 0.97 * real.least


@pytest.mark.slow
def test_a32_code_is_read_as_objdump_reads_it(tmp_path: Path) -> None:
    """No library of the distribution's is A32: the plugin's own code, compiled."""
    plugin = native_folder() / "plugin"
    found: dict[Insn, None] = {}
    for source in sorted(plugin.glob("*.c")):
        made = tmp_path / f"{source.stem}.o"
        compiler = target_of("arm").find_compiler()
        flags = (
            "-std=gnu11",
            "-O2",
            "-marm",
            "-mfpu=neon",
            "-c",
            f"-I{plugin.parent}/include",
            f"-DPLUGIN_API={NEWEST_API}",
        )
        subprocess.run([compiler, source, *flags, "-o", made], check=True)
        found |= dict.fromkeys(disassembled(A32, made))
    wrong, compared = disagreements(A32, oracle_arm.read, list(found))
    assert wrong == []
    assert compared > 3_000


def table_of(name: str) -> list[tuple[str, str, int, int]]:
    """Assembly, and what the plugin has to say of it: special, loads, stores."""
    lines = [
        line
        for file in FILES.get(name, (name,))
        for line in (INSNS / f"{file}.txt").read_text().splitlines()
        if not line.startswith("#")
    ]
    rows = [match for line in lines if (match := _ROW.match(line))]
    assert len(rows) == len(lines)
    return [(row[1], row[4] or "", int(row[2]), int(row[3])) for row in rows]


def facts_of(name: str, folder: Path, lines: Iterable[str]) -> list[Facts]:
    target = TARGETS[name]
    return classify(target, assembled(target, folder, lines))


@pytest.mark.parametrize("name", TARGETS)
def test_the_table(name: str, tmp_path: Path) -> None:
    table = table_of(name)
    found = facts_of(name, tmp_path, (row[0] for row in table))
    rows = zip(table, found, strict=True)
    got = [(row[0], facts.special, facts.loads, facts.stores) for row, facts in rows]
    assert got == table
    assert not any(facts.mark or facts.argument or facts.optional for facts in found)


@pytest.mark.parametrize("name", TARGETS)
def test_what_jumps(name: str, tmp_path: Path) -> None:
    found = facts_of(name, tmp_path, JUMPS[name])
    assert [line for line, facts in zip(JUMPS[name], found, strict=True) if not facts.jumps] == []


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_always_there_in_the_kernel(name: str, tmp_path: Path) -> None:
    sure, doubt = ALWAYS_THERE[name], IN_DOUBT[name]
    if name == "thumb":
        doubt = tuple(line for line in doubt if not line.startswith("popne"))
    found = facts_of(name, tmp_path, (*sure, *doubt))
    assert [facts.always_there for facts in found] == [1] * len(sure) + [0] * len(doubt)


@pytest.mark.parametrize("name", TARGETS)
def test_how_tasks_are_switched(name: str, tmp_path: Path) -> None:
    stores, loads = SWITCHES[name]
    found = facts_of(name, tmp_path, (*stores, *loads))
    got = [(facts.switch_store, facts.switch_load) for facts in found]
    assert got == [(1, 0)] * len(stores) + [(0, 1)] * len(loads)


@pytest.mark.parametrize("name", TARGETS)
def test_marks_and_bytes(name: str, tmp_path: Path) -> None:
    marks = classify(TARGETS[name], MARKS[name])
    assert [facts.mark for facts in marks] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0]
    byte, other = facts_of(name, tmp_path, (BYTES[name], NO_BYTES[name]))
    assert (byte.argument, byte.loads, byte.stores, byte.mark) == (1, 1, 0, 0)
    assert (other.argument, other.loads) == (0, 1)


DETAILS_OF_CP15 = {
    "mcr p15, 0, r0, c8, c3, 1": "tlb-maintenance TLBIMVAIS",
    "mcr p15, 0, r0, c8, c7, 0": "tlb-maintenance TLBIALL",
    "mcr p15, 0, r0, c8, c6, 2": "tlb-maintenance DTLBIASID",
    "mcr p15, 4, r0, c8, c7, 0": "tlb-maintenance",
    "mcr p15, 0, r0, c2, c0, 1": "cp15-write P15_0_C2_C0_1",
    "mrc p15, 0, r0, c0, c0, 0": "cp15-read P15_0_C0_C0_0",
    "mcr p15, 0, r0, c13, c0, 3": "thread-id",
    "mcrr p15, 0, r0, r1, c2": "cp15-write",
}  # fmt: skip

DETAILS = {
    "tlbi vae1is, x0": "tlb-maintenance VAE1IS", "tlbi vmalle1": "tlb-maintenance VMALLE1",
    "tlbi aside1, x3": "tlb-maintenance ASIDE1", "tlbi rvale1is, x0": "tlb-maintenance RVALE1IS",
    "tlbi vaale1os, x0": "tlb-maintenance VAALE1OS", "tlbi vmalls12e1": "tlb-maintenance",
    "msr sctlr_el1, x0": "msr S3_0_C1_C0_0", "mrs x0, midr_el1": "mrs S3_0_C0_C0_0",
    "msr ttbr0_el1, x0": "ttbr",
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "details"),
    [("arm64", DETAILS), ("arm", DETAILS_OF_CP15), ("thumb", DETAILS_OF_CP15)],
)
def test_which_register_or_entry_of_the_tlb_an_instruction_is_for(
    name: str, details: dict[str, str], tmp_path: Path
) -> None:
    target = TARGETS[name]
    found = classify(target, assembled(target, tmp_path, details))
    said = [f"{facts.special} {facts.detail}".rstrip() for facts in found]
    assert dict(zip(details, said, strict=True)) == details


RETURNS = {"arm": "movs pc, lr", "thumb": "subs pc, lr, #0", "arm64": "eret", "riscv64": "sret"}
CALLS = {"arm": "svc #0", "thumb": "svc #0", "arm64": "svc #0", "riscv64": "ecall"}


@pytest.mark.parametrize("name", TARGETS)
def test_what_enters_and_leaves_the_kernel(name: str, tmp_path: Path) -> None:
    back, call = facts_of(name, tmp_path, (RETURNS[name], CALLS[name]))
    assert (back.frame_return, back.leaves_kernel, back.calls) == (1, 1, 0)
    assert (call.frame_return, call.leaves_kernel, call.calls) == (0, 0, 1)


FUNCTION_CALLS = {
    "arm": ("bl .", "blne .", "blx .+8", "blx r3", "blxeq ip"),
    "thumb": ("bl .", "blx .+8", "blx r3", "blx lr"),
    "arm64": ("bl .", "blr x3"),
    "riscv64": ("jal ra, .", "jalr ra, 8(t1)", "c.jalr a5", "jal t0, .", "jalr t0, 0(t2)"),
}
FUNCTION_RETURNS = {
    "arm": (
        "bx lr",
        "bxne lr",
        "mov pc, lr",
        "pop {r4, pc}",
        "ldmfd sp!, {r4-r11, pc}",
        "ldr pc, [sp], #4",
    ),
    "thumb": ("bx lr", "mov pc, lr", "pop {r4, pc}", "pop {r4-r11, pc}", "ldr pc, [sp], #4"),
    "arm64": ("ret", "ret x3"),
    "riscv64": ("ret", "jalr zero, 0(ra)", "c.jr ra", "jr t0"),
}
NEITHER = {
    "arm": ("b .", "bx r3", "ldr pc, [pc, r3, lsl #2]", "movs pc, lr", "add pc, pc, r3", "svc #0"),
    "thumb": ("b .", "bx r3", "mov pc, r3", "tbb [pc, r3]", "cbz r3, .+8", "svc #0"),
    "arm64": ("b .", "br x16", "cbz x3, .", "tbz x3, #1, .", "b.eq .", "eret", "svc #0"),
    "riscv64": ("j .", "jr a5", "c.jr a5", "beqz a5, .", "ecall", "sret", "ebreak", "mv a0, a5"),
}


@pytest.mark.parametrize("name", TARGETS)
def test_calls_of_functions_and_returns(name: str, tmp_path: Path) -> None:
    kinds = (FUNCTION_CALLS[name], FUNCTION_RETURNS[name], NEITHER[name])
    found = facts_of(name, tmp_path, [line for kind in kinds for line in kind])
    got = [(facts.calls_function, facts.returns) for facts in found]
    calls, returns, neither = map(len, kinds)
    assert got == [(1, 0)] * calls + [(0, 1)] * returns + [(0, 0)] * neither


def test_accesses_that_depend_on_a_condition(tmp_path: Path) -> None:
    lines = ["ldmiane r0, {r1-r4}", "strdeq r0, r1, [r2]", "strexeq r0, r1, [r2]", "addne r0, r1"]
    found = facts_of("arm", tmp_path, lines)
    got = [(facts.optional, facts.loads, facts.stores) for facts in found]
    assert got == [(1, 1, 0), (1, 0, 1), (0, 0, 1), (0, 0, 0)]
    assert all(facts.can_fault for facts in found[:3])


def test_an_it_block_makes_what_is_in_it_conditional(tmp_path: Path) -> None:
    lines = ["ldr r0, [r1]", "itte eq\n ldreq r0, [r1]\n addeq r0, r0, r1\n ldmiane r2!, {r0, r3}"]
    codes = assembled(T32, tmp_path, lines)
    insns = [codes[1][at : at + 2] for at in range(0, len(codes[1]), 2)]
    found = classify(T32, [codes[0], *insns, codes[0]])
    assert [facts.optional for facts in found] == [0, 0, 1, 0, 1, 0]


@pytest.mark.parametrize("name", TARGETS)
def test_instructions_that_are_cut_short_do_no_harm(name: str, tmp_path: Path) -> None:
    whole = assembled(TARGETS[name], tmp_path, (row[0] for row in table_of(name)))
    parts = [code[:size] for code in whole for size in range(len(code))]
    assert len(classify(TARGETS[name], parts)) == len(parts)
