# SPDX-License-Identifier: GPL-2.0-or-later
"""How a branch predictor sees jumps: what the plugin says of the bytes, and what objdump says."""

import re
from pathlib import Path

import pytest

from kdelta.counts.trace import (
    JUMP_CALL,
    JUMP_CONDITIONAL,
    JUMP_DIRECT,
    JUMP_INDIRECT,
    JUMP_INDIRECT_CALL,
    JUMP_NONE,
    JUMP_RETURN,
    JUMP_SYSTEM,
)
from tests.native.real_code import LIBC, REAL, TARGETS, Real

from .classifying import X86, assembled, classify, disassembled

KINDS: dict[str, dict[int, tuple[str, ...]]] = {
    "x86_64": {
        JUMP_NONE: ("nop", "rep movsb", "repne scasb", "rep stosq", "lea (%rax),%rbx", "push %rax"),
        JUMP_CONDITIONAL: ("je .", "jne .+0x1000", "loop .", "jrcxz ."),
        JUMP_DIRECT: ("jmp .", "jmp .+0x1000"),
        JUMP_CALL: ("call .", "call .+0x1000"),
        JUMP_INDIRECT: ("jmp *%rax", "jmp *8(%rsp)", "notrack jmp *%rdx", "jmp *%r11"),
        JUMP_INDIRECT_CALL: ("call *%rax", "call *%r11", "call *8(%rsp)"),
        JUMP_RETURN: ("ret", "ret $16", "repz ret", "bnd ret"),
        JUMP_SYSTEM: ("syscall", "sysretq", "iretq", "lret", "ud2", "int3", "hlt", "ljmp *(%rax)"),
    },
    "arm": {
        JUMP_NONE: ("nop", "add r0, r1", "ldr r0, [r1]"),
        JUMP_CONDITIONAL: ("beq .", "bhi ."),
        JUMP_DIRECT: ("b .",),
        JUMP_CALL: ("bl .", "bleq .", "blx .+8"),
        JUMP_INDIRECT: ("bx r3", "bxeq r3", "ldr pc, [pc, r3, lsl #2]", "add pc, pc, r3", "bxj r1"),
        JUMP_INDIRECT_CALL: ("blx r3", "blxne r3"),
        JUMP_RETURN: ("bx lr", "bxeq lr", "pop {r4, pc}", "mov pc, lr", "ldr pc, [sp], #4"),
        JUMP_SYSTEM: ("svc #0", "movs pc, lr", "udf #0", "wfi", "ldm sp, {r0-r3, pc}^"),
    },
    "thumb": {
        JUMP_NONE: ("nop", "add r0, r1", "ldr r0, [r1]"),
        JUMP_CONDITIONAL: ("beq .", "bne.w .+0x1000", "cbz r3, .+8", "cbnz r3, .+8"),
        JUMP_DIRECT: ("b .", "b.w .+0x1000"),
        JUMP_CALL: ("bl .", "blx .+8"),
        JUMP_INDIRECT: ("bx r3", "mov pc, r3", "tbb [pc, r3]", "ldr.w pc, [r1, r2]", "bxj r1"),
        JUMP_INDIRECT_CALL: ("blx r3",),
        JUMP_RETURN: ("bx lr", "pop {r4, pc}", "mov pc, lr", "ldr pc, [sp], #4"),
        JUMP_SYSTEM: ("svc #0", "udf #0", "wfi", "subs pc, lr, #4"),
    },
    "arm64": {
        JUMP_NONE: ("nop", "add x0, x1, x2", "ldr x0, [x1]"),
        JUMP_CONDITIONAL: ("b.eq .", "cbz x3, .", "cbnz w3, .", "tbz x3, #1, .", "tbnz x3, #33, ."),
        JUMP_DIRECT: ("b .",),
        JUMP_CALL: ("bl .",),
        JUMP_INDIRECT: ("br x16",),
        JUMP_INDIRECT_CALL: ("blr x3",),
        JUMP_RETURN: ("ret", "ret x3"),
        JUMP_SYSTEM: ("svc #0", "eret", "brk #1", "wfi", "udf #0"),
    },
    "riscv64": {
        JUMP_NONE: ("mv a0, a5", "ld a0, 0(a1)", "c.mv a0, a5", "c.nop"),
        JUMP_CONDITIONAL: ("beq a0, a1, .", "c.beqz a5, .", "c.bnez a5, ."),
        JUMP_DIRECT: ("jal x0, .", "c.j ."),
        JUMP_CALL: ("jal ra, .", "jal t0, ."),
        JUMP_INDIRECT: ("jr a5", "c.jr a5", "jalr zero, 4(a5)"),
        JUMP_INDIRECT_CALL: ("jalr ra, 0(a5)", "c.jalr a5"),
        JUMP_RETURN: ("ret", "c.jr ra", "jr t0"),
        JUMP_SYSTEM: ("ecall", "sret", "ebreak", "c.ebreak", "wfi"),
    },
}  # fmt: skip
ALL_TARGETS = {"x86_64": X86, **TARGETS}


@pytest.mark.parametrize("name", KINDS)
def test_the_table_of_jumps(name: str, tmp_path: Path) -> None:
    rows = [(line, kind) for kind, lines in KINDS[name].items() for line in lines]
    codes = assembled(ALL_TARGETS[name], tmp_path, [line for line, _ in rows])
    found = classify(ALL_TARGETS[name], codes)
    got = [(line, facts.jump) for (line, _), facts in zip(rows, found, strict=True)]
    assert got == rows


def test_an_it_block_makes_a_branch_conditional(tmp_path: Path) -> None:
    lines = ["nop", "it eq\n beq.w .+0x1000"]
    codes = assembled(TARGETS["thumb"], tmp_path, lines)
    it, branch = codes[1][:2], codes[1][2:]
    assert [f.jump for f in classify(TARGETS["thumb"], [codes[0], it, branch])] == [0, 0, 1]


# By the mnemonic alone; what is not here does not jump, or is no predictor's.
_X86 = [
    (r"(bnd |notrack )?jmpq? +\*", JUMP_INDIRECT),
    (r"(bnd |notrack )?callq? +\*", JUMP_INDIRECT_CALL),
    (r"(bnd )?jmpq? ", JUMP_DIRECT), (r"(bnd )?callq? ", JUMP_CALL),
    (r"((bnd|repz) )?retq?\b", JUMP_RETURN), (r"(bnd )?j[a-z]+(,p[nt])? ", JUMP_CONDITIONAL),
    (r"loop", JUMP_CONDITIONAL),
]  # fmt: skip
_ARM64 = [
    (r"b\.|cbn?z|tbn?z", JUMP_CONDITIONAL), (r"bl\t", JUMP_CALL), (r"b\t", JUMP_DIRECT),
    (r"blra|blr\t", JUMP_INDIRECT_CALL), (r"bra|br\t", JUMP_INDIRECT), (r"ret", JUMP_RETURN),
]  # fmt: skip
_RISCV = [
    (r"beq|bne|blt|bge|bgt|ble", JUMP_CONDITIONAL), (r"j\t", JUMP_DIRECT),
    (r"jal\t(zero|x0),", JUMP_DIRECT), (r"jal\t", JUMP_CALL), (r"ret|jr\t(ra|t0)", JUMP_RETURN),
    (r"jr\t", JUMP_INDIRECT), (r"jalr\t(ra,|t0,|[^,]*$)", JUMP_INDIRECT_CALL),
    (r"jalr\t", JUMP_INDIRECT),
]  # fmt: skip
# What is in an IT block is told by what came before, which the list of different instructions has
# not: there a conditional branch and another one are alike.
_THUMB = [
    (r"cbn?z|b(eq|ne|cs|hs|cc|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)(\.[nw])?\t", JUMP_CONDITIONAL),
    (r"blx(\w\w)?\t(r\d|[a-z]{2}$)", JUMP_INDIRECT_CALL), (r"blx?(\w\w)?\t", JUMP_CALL),
    (r"b(\.[nw])?\t", JUMP_CONDITIONAL), (r"bx(\w\w)?\tlr", JUMP_RETURN),
    (r"bx|tb[bh]", JUMP_INDIRECT), (r"(pop|ldm).*pc}$", JUMP_RETURN),
    (r"ldr\.w\tpc, \[sp\],?$", JUMP_RETURN),
]  # fmt: skip
_ARMV8M = ("bfcsel", "blxns", "bxns", "bfl", "bfx")  # tables that objdump takes for code
ORACLES = {"thumb": _THUMB, "arm64": _ARM64, "riscv64": _RISCV}


def disagreements(name: str, words: list[tuple[str, int]], *argv: str | Path) -> list[str]:
    target = ALL_TARGETS[name]
    insns = disassembled(target, *argv)
    wrong, seen = [], set()
    for insn, facts in zip(insns, classify(target, (i.code for i in insns)), strict=True):
        text = re.split("[<;@#]|//", insn.text, maxsplit=1)[0].strip()
        if "UNDEFINED" in insn.text or "(bad)" in insn.text or text.startswith(_ARMV8M):
            continue
        want = next((kind for pattern, kind in words if re.match(pattern, text)), JUMP_NONE)
        got = facts.jump
        if name == "thumb" and got == JUMP_DIRECT:
            got = JUMP_CONDITIONAL
        if not want and (got == JUMP_SYSTEM or (got == JUMP_INDIRECT and "pc" in text)):
            continue
        seen.add(got)
        if got != want:
            wrong.append(f"{insn.code.hex()} {insn.text!r}: plugin {got}, objdump {want}")
    assert {JUMP_CONDITIONAL, JUMP_CALL, JUMP_INDIRECT_CALL, JUMP_RETURN} <= seen
    return wrong


@pytest.mark.slow
def test_jumps_of_the_c_library_are_read_as_objdump_reads_them() -> None:
    assert disagreements("x86_64", _X86, LIBC) == []


@pytest.mark.slow
@pytest.mark.parametrize("real", REAL, ids=lambda real: real.target)
def test_jumps_of_a_c_library_are_read_as_objdump_reads_them(real: Real) -> None:
    library = f"/usr/{real.library}/lib/libc.so.6"
    assert disagreements(real.target, ORACLES[real.target], *real.options, library) == []
