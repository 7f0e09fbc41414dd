/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How long an x86-64 instruction is, and whether it does the same when it is executed elsewhere. */
#ifndef KDELTA_KERNEL_MODE_INSN_H
#define KDELTA_KERNEL_MODE_INSN_H

#include <stdint.h>

#define INSN_LONGEST 15

enum insn_kind {
    INSN_UNKNOWN,  /* not an instruction of 64-bit mode, or one that is not known here */
    INSN_MOVES,    /* does the same anywhere, once its operand that is relative to RIP (if any) is corrected */
    INSN_STAYS,    /* valid, but not to be moved */
    INSN_NOP,      /* padding, and moves too */
    INSN_JCC,      /* a conditional jump by 8 or 32 bits: can be moved as one by 32 */
    INSN_JUMP,     /* any other jump, call or loop to a known place */
    INSN_INDIRECT, /* a jump whose target is not known */
    INSN_SYSCALL,
};

struct insn {
    enum insn_kind kind;
    uint8_t length;      /* 0 when unknown */
    uint8_t relative_at; /* where its 32-bit displacement from RIP is, or 0 */
    uint8_t condition;   /* of a JCC: the low half of its opcode */
    int32_t offset; /* from its end to where it jumps, or to what relative_at means */
};

/* Reads the instruction at `code`, of which `size` bytes may be read; one that does not end there is unknown. */
struct insn kc_insn_read(const uint8_t *code, uint64_t size);

#endif
