/* SPDX-License-Identifier: GPL-2.0-or-later */
/* riscv64: marks, special instructions, accesses and what can fault, derived from the bytes. */
#include <string.h>

#include "arch.h"

enum special {
    SP_NONE, SP_ECALL, SP_EBREAK, SP_SRET, SP_MRET, SP_WFI, SP_SFENCE, SP_FENCE, SP_FENCE_I, SP_PAUSE, SP_CACHE,
    SP_CSR_STATUS, SP_CSR_SATP, SP_CSR_TRAP, SP_CSR_FP, SP_CSR_COUNTER, SP_CSR, SP_LR, SP_SC, SP_AMO,
};

static const char *const special_names[] = {
    "", "ecall", "ebreak", "sret", "mret", "wfi", "sfence.vma", "fence", "fence.i", "pause", "cache-maintenance",
    "csr-status", "csr-satp", "csr-trap", "csr-fp", "csr-counter", "csr", "lr", "sc", "amo", NULL,
};

enum { STACK = 2, GLOBALS = 3 };

static inline uint32_t field(uint32_t word, unsigned lowest, unsigned bits)
{
    return word >> lowest & ((1u << bits) - 1);
}

/* Memory operands that the instruction reads and writes. */
static void accesses(struct insn_facts *f, unsigned loads, unsigned stores)
{
    f->loads = (uint8_t)loads;
    f->stores = (uint8_t)stores;
    f->can_fault = true;
}

static void special(struct insn_facts *f, enum special kind)
{
    f->special = kind;
    f->can_fault = true;
}

/* The RISC-V Instruction Set Manual, Volume II: CSR addresses. */
static enum special csr_kind(uint32_t csr)
{
    if (csr >= 1 && csr <= 3)
        return SP_CSR_FP;
    if (csr == 0x100 || csr == 0x104 || csr == 0x144) /* sstatus, sie, sip */
        return SP_CSR_STATUS;
    if (csr >= 0x140 && csr <= 0x143) /* sscratch, sepc, scause, stval */
        return SP_CSR_TRAP;
    if (csr == 0x180)
        return SP_CSR_SATP;
    return csr >> 5 == 0xc00 >> 5 ? SP_CSR_COUNTER : SP_CSR;
}

static void classify_system(uint32_t word, struct insn_facts *f)
{
    uint32_t function = word >> 25;

    if (field(word, 12, 3) & 3) {
        special(f, csr_kind(word >> 20));
        return;
    }
    f->can_fault = true;
    switch (word >> 20) {
    case 0x000: special(f, SP_ECALL); f->jumps = f->calls = true; return;
    case 0x001: special(f, SP_EBREAK); f->jumps = true; return;
    case 0x102: special(f, SP_SRET); f->jumps = f->frame_return = f->leaves_kernel = true; return;
    case 0x302: special(f, SP_MRET); f->jumps = f->frame_return = f->leaves_kernel = true; return;
    case 0x105: special(f, SP_WFI); f->jumps = true; return;
    }
    if (function == 0x09 || function == 0x0b || function == 0x0c) /* sfence.vma, sinval.vma and the fences around it */
        special(f, SP_SFENCE);
}

static void classify_fence(uint32_t word, struct insn_facts *f)
{
    switch (field(word, 12, 3)) {
    case 0: special(f, word == 0x0100000f ? SP_PAUSE : SP_FENCE); break;
    case 1: special(f, SP_FENCE_I); break;
    default: special(f, SP_CACHE); /* cbo.* */
    }
}

static void classify_atomic(uint32_t word, struct insn_facts *f)
{
    switch (word >> 27) {
    case 2: special(f, SP_LR); accesses(f, 1, 0); break;
    case 3: special(f, SP_SC); accesses(f, 0, 1); break;
    default: special(f, SP_AMO); accesses(f, 1, 1);
    }
}

static bool is_reliable_base(uint32_t base)
{
    return base == STACK || base == GLOBALS;
}

static void classify_access(uint32_t word, bool load, struct insn_facts *f)
{
    uint32_t base = field(word, 15, 5), moved = load ? field(word, 7, 5) : field(word, 20, 5);
    bool floating = word >> 2 & 1, doubleword = field(word, 12, 3) == 3;

    f->can_fault = true;
    if (floating && (field(word, 12, 3) == 0 || field(word, 12, 3) > 4))
        return; /* vectors */
    accesses(f, load, !load);
    f->always_there = is_reliable_base(base);
    f->switch_store = !load && !floating && doubleword && moved == STACK && base != STACK;
    f->switch_load = load && !floating && doubleword && moved == STACK && base != STACK;
}

/* The RISC-V Instruction Set Manual, Unconditional Jumps: ra and t0 are link registers. */
static bool is_link(uint32_t reg)
{
    return reg == 1 || reg == 5;
}

static void classify_jump(uint32_t word, struct insn_facts *f)
{
    f->jumps = true;
    f->calls_function = is_link(field(word, 7, 5));
    f->returns = (word & 0x7f) == 0x67 && !f->calls_function && is_link(field(word, 15, 5));
}

static void classify_wide(uint32_t word, struct insn_facts *f)
{
    switch (word & 0x7f) {
    case 0x13: case 0x1b: case 0x33: case 0x3b: case 0x37: case 0x17: break; /* on immediates and registers */
    case 0x63: f->jumps = true; break;
    case 0x67: case 0x6f: classify_jump(word, f); break;
    case 0x03: case 0x07: classify_access(word, true, f); break;
    case 0x23: case 0x27: classify_access(word, false, f); break;
    case 0x2f: classify_atomic(word, f); break;
    case 0x0f: classify_fence(word, f); break;
    case 0x73: classify_system(word, f); break;
    default: f->can_fault = true; /* floating point, vectors, and what is not known */
    }
}

static void classify_compressed_jump(uint32_t half, struct insn_facts *f)
{
    bool no_source = !field(half, 2, 5);

    f->jumps = no_source; /* jr, jalr, ebreak; the others are mv and add */
    f->calls_function = no_source && half >> 12 == 9 && half != 0x9002;
    f->returns = no_source && half >> 12 == 8 && is_link(field(half, 7, 5));
    if (half == 0x9002)
        special(f, SP_EBREAK);
}

static void classify_compressed(uint32_t half, struct insn_facts *f)
{
    uint32_t function = half >> 13;
    bool on_stack = (half & 3) == 2;

    if ((half & 3) == 1) {
        f->jumps = function >= 5;
    } else if (on_stack && function == 4) {
        classify_compressed_jump(half, f);
    } else if (function == 4 || !half) { /* not defined, or defined for this */
        f->can_fault = true;
    } else if (function) {
        accesses(f, function < 4, function > 4);
        f->always_there = on_stack;
    }
}

static bool is_tagged(uint32_t word, struct insn_facts *f)
{
    uint32_t mark = word ^ (0x3013 | 0x4b0u << 20);

    if (!(mark & ~(15u << 20)) && mark >> 20 > MARK_NONE && mark >> 20 < MARK_KINDS) {
        f->mark = mark >> 20;
        return true;
    }
    if ((word & ~(31u << 15)) == (0x4003 | 0x4b6u << 20)) {
        f->argument = true;
        accesses(f, 1, 0);
        return true;
    }
    return false;
}

static void classify(const uint8_t *bytes, size_t size, struct stretch *stretch, struct insn_facts *f)
{
    (void)stretch;
    memset(f, 0, sizeof *f);
    f->can_fault = true;
    if (size < 2)
        return;
    uint32_t word = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8;

    if (size >= 4)
        word |= (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
    if ((word & 3) == 3 && size < 4)
        return;
    f->can_fault = false;
    if ((word & 3) != 3)
        classify_compressed(word & 0xffff, f);
    else if (!is_tagged(word, f))
        classify_wide(word, f);
}

const struct arch arch_riscv64 = {
    .target_name = "riscv64",
    .kernel_start = UINT64_C(1) << 63,
    .page_bytes = 4096,
    .max_insn_bytes = 4,
    .one_entry = true,
    .special_names = special_names,
    .classify = classify,
};
