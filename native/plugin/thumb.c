/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Thumb-2 code: 16-bit instructions, and wide ones of two halves. */
#include "arm_insn.h"

enum { WORD_LITERAL = 0x4f, HIGH_REGISTERS = 0x44, LIST_OF_LOW = 0xff };

static void trap(enum arm_special kind, struct insn_facts *f)
{
    arm_special(f, kind);
    f->jumps = true;
}

static void classify_high_registers(uint32_t half, struct insn_facts *f)
{
    unsigned destination = field(half, 0, 3) | field(half, 7, 1) << 3;

    switch (field(half, 8, 2)) {
    case 0: case 2: /* add, mov */
        f->jumps = destination == ARM_PC;
        f->returns = half == 0x46f7; /* mov pc, lr */
        break;
    case 3: /* bx, blx */
        f->jumps = true;
        f->calls_function = half >> 7 & 1;
        f->returns = !f->calls_function && field(half, 3, 4) == ARM_LR;
        break;
    }
}

static void classify_miscellaneous(uint32_t half, struct insn_facts *f)
{
    switch (field(half, 8, 4)) {
    case 1: case 3: case 9: case 11: f->jumps = true; break; /* cbz, cbnz */
    case 4: case 5: arm_multiple((half & LIST_OF_LOW) | (half >> 8 & 1) << 14, false, ARM_SP, false, f); break;
    case 6:
        if ((half & 0xe0) == 0x60)
            arm_special(f, ARM_CPS);
        else
            arm_special(f, ARM_SETEND);
        break;
    case 10:
        if (field(half, 6, 2) == 2)
            trap(ARM_TRAP, f); /* hlt */
        break;
    case 12: case 13: arm_multiple((half & LIST_OF_LOW) | (half >> 8 & 1) << ARM_PC, true, ARM_SP, false, f); break;
    case 14: trap(ARM_TRAP, f); break;
    case 15:
        if (!(half & 15))
            arm_hint(field(half, 4, 4), f);
        break;
    }
}

static void classify_narrow(uint32_t half, struct insn_facts *f)
{
    switch (half >> 12) {
    case 4:
        if (half >> 11 == 9) {
            arm_moves(f, true, 1);
            f->always_there = true;
        } else if (half >> 10 == 0x11) {
            classify_high_registers(half, f);
        }
        break;
    case 5: arm_moves(f, field(half, 9, 3) >= 3, 1); break;
    case 6: case 7: case 8: arm_moves(f, half >> 11 & 1, 1); break;
    case 9:
        arm_moves(f, half >> 11 & 1, 1);
        f->always_there = true;
        break;
    case 11: classify_miscellaneous(half, f); break;
    case 12: arm_multiple(half & LIST_OF_LOW, half >> 11 & 1, field(half, 8, 3), false, f); break;
    case 13:
        f->jumps = true;
        if (half >> 8 == 0xde)
            trap(ARM_TRAP, f);
        if (half >> 8 == 0xdf) {
            trap(ARM_SVC, f);
            f->calls = true;
        }
        break;
    case 14: f->jumps = true; break;
    }
}

static bool is_reliable_base(uint32_t first)
{
    return field(first, 0, 4) == ARM_SP || field(first, 0, 4) == ARM_PC;
}

static void classify_table_or_exclusive(uint32_t first, uint32_t second, struct insn_facts *f)
{
    bool load = first >> 4 & 1;
    unsigned op = field(second, 4, 4);

    if (load && op < 2) { /* tbb, tbh: the tables lie in the code */
        arm_moves(f, true, 1);
        f->always_there = field(first, 0, 4) == ARM_PC;
        f->jumps = true;
    } else {
        arm_exclusive(load, op < 8 || op >= 12, (op & 3) == 3, f);
    }
}

static void classify_pair_or_exclusive(uint32_t first, uint32_t second, struct insn_facts *f)
{
    bool load = first >> 4 & 1;

    if (first & 0x0120) {
        arm_moves(f, load, 2);
        f->pair = true;
        f->always_there = is_reliable_base(first);
    } else if (first >> 7 & 1) {
        classify_table_or_exclusive(first, second, f);
    } else {
        arm_exclusive(load, true, false, f);
    }
}

static void classify_control(uint32_t first, uint32_t second, struct insn_facts *f)
{
    switch (field(first, 4, 7)) {
    case 0x38: case 0x39: arm_special(f, ARM_MSR); break;
    case 0x3a:
        if (field(second, 8, 3))
            arm_special(f, ARM_CPS);
        else
            arm_hint(field(second, 0, 8), f);
        break;
    case 0x3b: arm_barrier(field(second, 4, 4), f); break;
    case 0x3c: f->jumps = true; break; /* bxj */
    case 0x3d: arm_exception_return(f); break;
    case 0x3e: case 0x3f: arm_special(f, ARM_MRS); break;
    case 0x7e: trap(ARM_HVC, f); break;
    case 0x7f: trap(second >> 13 & 1 ? ARM_TRAP : ARM_SMC, f); break;
    default: f->jumps = true; /* a conditional branch */
    }
}

static void classify_single(uint32_t first, uint32_t second, struct insn_facts *f)
{
    bool load = first >> 4 & 1, to_pc = second >> 12 == ARM_PC;
    unsigned bits = 8u << field(first, 5, 2);

    if (load && to_pc && bits < 32)
        return; /* pld, pli */
    arm_moves(f, load, 1);
    f->always_there = is_reliable_base(first);
    f->jumps = load && to_pc;
    f->returns = first == 0xf85d && second == 0xfb04; /* ldr pc, [sp], #4 */
}

static void classify_wide(uint32_t first, uint32_t second, struct insn_facts *f)
{
    uint32_t word = first << 16 | second;

    switch (first >> 8) {
    case 0xe8: case 0xe9:
        if (first >> 6 & 1)
            classify_pair_or_exclusive(first, second, f);
        else if (field(first, 7, 2) % 3 == 0)
            arm_srs_rfe(first >> 4 & 1, f);
        else
            arm_multiple(second, first >> 4 & 1, field(first, 0, 4), false, f);
        break;
    case 0xec: case 0xed: case 0xee: case 0xfc: case 0xfd: case 0xfe: arm_coprocessor(word, f); break;
    case 0xef: case 0xff: f->can_fault = true; break; /* NEON */
    case 0xf0: case 0xf1: case 0xf2: case 0xf3: case 0xf4: case 0xf5: case 0xf6: case 0xf7:
        if (second >> 15 && !(second & 0x5000))
            classify_control(first, second, f);
        else
            f->jumps = second >> 15;
        f->calls_function = second >> 14 == 3; /* bl, blx */
        break;
    case 0xf9:
        if (!(first >> 4 & 1)) {
            arm_neon_access(word, f);
            break;
        } /* fall through */
    case 0xf8: classify_single(first, second, f); break;
    }
}

void thumb_classify(uint32_t first, uint32_t second, struct insn_facts *f)
{
    if (first >> 11 >= 0x1d)
        classify_wide(first, second, f);
    else
        classify_narrow(first, f);
}
