/* SPDX-License-Identifier: GPL-2.0-or-later */
/* 32-bit ARM: marks, special instructions, accesses and what can fault, derived from the bytes; A32 here, Thumb-2 in thumb.c. */
#include <stdio.h>
#include <string.h>

#include "arm_insn.h"

static const char *const special_names[] = {
    "", "svc", "exception-return", "srs", "trap", "hvc", "smc", "cps", "setend", "mrs", "msr",
    "cache-maintenance", "tlb-maintenance", "cp15-barrier", "thread-id", "cp15-read", "cp15-write", "timer", "coprocessor",
    "dmb", "dsb", "isb", "sb", "csdb", "yield", "wfe", "wfi", "sev", "ldrex", "strex", "clrex",
    "lda", "stl", "swp", "vfp-system", NULL,
};

static uint32_t half_at(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8;
}

void arm_exception_return(struct insn_facts *f)
{
    arm_special(f, ARM_EXCEPTION_RETURN);
    f->jumps = f->frame_return = f->leaves_kernel = true;
}

void arm_multiple(uint32_t list, bool load, unsigned base, bool with_spsr, struct insn_facts *f)
{
    bool callee_saved = (list & 0x0ff0) == 0x0ff0;

    arm_moves(f, load, (unsigned)__builtin_popcount(list));
    f->always_there = base == ARM_SP;
    f->switch_store = !load && callee_saved;
    f->switch_load = load && callee_saved;
    if (load && list >> ARM_PC & 1) {
        f->jumps = f->returns = true;
        if (with_spsr) {
            arm_exception_return(f);
            f->returns = false;
        }
    }
}

void arm_srs_rfe(bool rfe, struct insn_facts *f)
{
    arm_special(f, ARM_SRS);
    if (rfe)
        arm_exception_return(f);
    arm_moves(f, rfe, 2);
}

void arm_hint(unsigned number, struct insn_facts *f)
{
    static const uint8_t by_number[0x15] = {
        [1] = ARM_YIELD, [2] = ARM_WFE, [3] = ARM_WFI, [4] = ARM_SEV, [5] = ARM_SEV, [0x14] = ARM_CSDB,
    };

    if (number < sizeof by_number && by_number[number])
        arm_special(f, by_number[number]);
    f->jumps = f->special == ARM_WFI || f->special == ARM_WFE;
}

void arm_barrier(unsigned option, struct insn_facts *f)
{
    static const uint8_t by_option[16] = {
        [1] = ARM_CLREX, [2] = ARM_CLREX, [4] = ARM_DSB, [5] = ARM_DMB, [6] = ARM_ISB, [7] = ARM_SB,
    };

    arm_special(f, by_option[option & 15]);
}

void arm_exclusive(bool load, bool exclusive, bool pair, struct insn_facts *f)
{
    arm_special(f, exclusive ? (load ? ARM_LDREX : ARM_STREX) : (load ? ARM_LDA : ARM_STL));
    arm_moves(f, load, pair ? 2 : 1);
}

/* ARM Architecture Reference Manual (ARMv7-A and ARMv7-R), B3.17: CP15 by primary register. */
static enum arm_special system_register(uint32_t word)
{
    unsigned crn = field(word, 16, 4), crm = field(word, 0, 4), opc2 = field(word, 5, 3);
    bool read = word >> 20 & 1;

    if (crn == 7 && crm == 0 && opc2 == 4)
        return ARM_WFI;
    if (crn == 7 && ((crm == 10 && (opc2 == 4 || opc2 == 5)) || (crm == 5 && opc2 == 4)))
        return ARM_CP15_BARRIER;
    if (crn == 7 && !read && crm != 8 && crm != 4)
        return ARM_CACHE;
    if (crn == 8)
        return ARM_TLB;
    if (crn == 13 && opc2 >= 2)
        return ARM_THREAD_ID;
    if (crn == 14)
        return ARM_TIMER;
    return read ? ARM_CP15_READ : ARM_CP15_WRITE;
}

/* opc1, CRn, CRm and opc2, which say the register or the operation; of the TLB those of PL1 alone. */
static void classify_system_register(uint32_t word, struct insn_facts *f)
{
    unsigned opc1 = field(word, 21, 3);

    arm_special(f, system_register(word));
    if (f->special == ARM_CP15_READ || f->special == ARM_CP15_WRITE || (f->special == ARM_TLB && !opc1))
        f->detail = 1u << 16 | opc1 << 12 | field(word, 16, 4) << 8 | field(word, 0, 4) << 4 | field(word, 5, 3);
}

static bool is_vfp(unsigned coprocessor)
{
    return coprocessor >= 9 && coprocessor <= 11;
}

static void coprocessor_memory(uint32_t word, struct insn_facts *f)
{
    unsigned coprocessor = field(word, 8, 4), words = field(word, 0, 8);
    bool load = word >> 20 & 1, one = (word >> 24 & 1) && !(word >> 21 & 1);

    if (!is_vfp(coprocessor)) {
        arm_special(f, ARM_COPROCESSOR);
        one = true;
    }
    /* vldm and vstm by the registers that they move; of a double register each is two words. */
    arm_moves(f, load, one ? 1 : coprocessor == 11 ? words / 2 : words);
    f->always_there = field(word, 16, 4) == ARM_SP || field(word, 16, 4) == ARM_PC;
}

void arm_coprocessor(uint32_t word, struct insn_facts *f)
{
    unsigned coprocessor = field(word, 8, 4);
    bool vfp = is_vfp(coprocessor), pair = (word & 0x0fe00000) == 0x0c400000;
    bool one = (word & 0x0f000010) == 0x0e000010;
    bool neon = word >> 28 == 0xf && (coprocessor == 8 || coprocessor == 13 || vfp); /* of ARMv8 */

    f->can_fault = true;
    if (neon)
        return;
    if (!pair && field(word, 25, 3) == 6)
        coprocessor_memory(word, f);
    else if (coprocessor == 15 && pair)
        arm_special(f, field(word, 0, 4) == 14 ? ARM_TIMER : word >> 20 & 1 ? ARM_CP15_READ : ARM_CP15_WRITE);
    else if (coprocessor == 15 && one)
        classify_system_register(word, f);
    else if (!vfp)
        arm_special(f, ARM_COPROCESSOR);
    else if (vfp && one && (word & 0x0fe00f6f) == 0x0ee00a00)
        arm_special(f, ARM_VFP_SYSTEM);
    f->jumps |= f->special == ARM_WFI;
}

/* By the double registers that they move; an element of a register counts as one. */
void arm_neon_access(uint32_t word, struct insn_facts *f)
{
    static const uint8_t registers[16] = { 4, 4, 4, 4, 3, 3, 3, 1, 2, 2, 2 };
    unsigned structure = field(word, 8, 2) + 1;

    arm_moves(f, word >> 21 & 1, word >> 23 & 1 ? structure : registers[field(word, 8, 4)]);
}

static void classify_unconditional(uint32_t word, struct insn_facts *f)
{
    unsigned top = field(word, 20, 8);

    if (top == 0x10)
        arm_special(f, word >> 16 & 1 ? ARM_SETEND : ARM_CPS);
    else if (top == 0x57)
        arm_barrier(field(word, 4, 4), f);
    else if ((top & 0xf1) == 0x40)
        arm_neon_access(word, f);
    else if ((top & 0xc7) == 0x45 || (top & 0xd7) == 0x51 || (top & 0xd7) == 0x55)
        ; /* pli, pldw, pld */
    else if ((top & 0xe5) == 0x84 || (top & 0xe5) == 0x81)
        arm_srs_rfe(top & 1, f);
    else if ((top & 0xe0) == 0xa0)
        f->jumps = f->calls_function = true; /* blx */
    else if ((top & 0xe0) == 0xc0 || (top & 0xf0) == 0xe0)
        arm_coprocessor(word, f);
    else
        f->can_fault = true; /* NEON, and what is undefined */
}

static void classify_miscellaneous(uint32_t word, struct insn_facts *f)
{
    unsigned op = field(word, 21, 2);

    switch (field(word, 4, 4)) {
    case 0: arm_special(f, op & 1 ? ARM_MSR : ARM_MRS); break;
    case 1: case 2: case 3: /* bx, bxj, blx; clz */
        f->jumps = op == 1;
        f->calls_function = f->jumps && field(word, 4, 4) == 3;
        f->returns = f->jumps && !f->calls_function && field(word, 0, 4) == ARM_LR;
        break;
    case 6:
        if (op == 3)
            arm_exception_return(f);
        break;
    case 7: {
        static const uint8_t by_op[4] = { ARM_TRAP, ARM_TRAP, ARM_HVC, ARM_SMC };

        arm_special(f, by_op[op]);
        f->jumps = true;
        break;
    }
    }
}

static void classify_synchronization(uint32_t word, struct insn_facts *f)
{
    if (word >> 23 & 1) {
        bool exclusive = word >> 9 & 1, pair = field(word, 21, 2) == 1;

        arm_exclusive(word >> 20 & 1, exclusive, pair, f);
    } else {
        arm_special(f, ARM_SWP);
        arm_accesses(f, 1, 1);
    }
}

static bool is_reliable_base(unsigned base)
{
    return base == ARM_SP || base == ARM_PC;
}

/* Halfwords, signed bytes and pairs of words. */
static void classify_extra_access(uint32_t word, struct insn_facts *f)
{
    bool load = word >> 20 & 1, pair = !load && field(word, 5, 2) >= 2;

    if (pair)
        load = field(word, 5, 2) == 2;
    arm_moves(f, load, pair ? 2 : 1);
    f->pair = pair;
    f->always_there = is_reliable_base(field(word, 16, 4));
}

static void classify_data_processing(uint32_t word, struct insn_facts *f)
{
    bool compares = (word & 0x01800000) == 0x01000000;

    if (compares || field(word, 12, 4) != ARM_PC)
        return;
    f->jumps = true;
    f->returns = (word & 0x0fffffff) == 0x01a0f00e; /* mov pc, lr */
    if (word >> 20 & 1)
        arm_exception_return(f);
}

static void classify_group_0(uint32_t word, struct insn_facts *f)
{
    bool compares_without_flags = (word & 0x01900000) == 0x01000000;

    if ((word & 0x90) == 0x90) {
        if (field(word, 5, 2))
            classify_extra_access(word, f);
        else if (word >> 24 & 1)
            classify_synchronization(word, f);
    } else if (compares_without_flags) {
        classify_miscellaneous(word, f);
    } else {
        classify_data_processing(word, f);
    }
}

static void classify_immediate(uint32_t word, struct insn_facts *f)
{
    if ((word & 0x01900000) != 0x01000000)
        classify_data_processing(word, f);
    else if (!(word >> 21 & 1))
        ; /* movw, movt */
    else if (word & 0x004f0000)
        arm_special(f, ARM_MSR);
    else
        arm_hint(field(word, 0, 8), f);
}

static void classify_access(uint32_t word, struct insn_facts *f)
{
    bool load = word >> 20 & 1;

    arm_moves(f, load, 1);
    f->always_there = is_reliable_base(field(word, 16, 4));
    f->jumps = load && field(word, 12, 4) == ARM_PC;
    f->returns = (word & 0x0fffffff) == 0x049df004; /* ldr pc, [sp], #4 */
}

static void classify_a32(uint32_t word, struct insn_facts *f)
{
    if (word >> 28 == 0xf) {
        classify_unconditional(word, f);
        return;
    }
    switch (field(word, 25, 3)) {
    case 0: classify_group_0(word, f); break;
    case 1: classify_immediate(word, f); break;
    case 3:
        if (word >> 4 & 1) {
            if ((word & 0x01f000f0) == 0x01f000f0) { /* udf */
                arm_special(f, ARM_TRAP);
                f->jumps = true;
            }
            break;
        } /* fall through */
    case 2: classify_access(word, f); break;
    case 4: arm_multiple(word & 0xffff, word >> 20 & 1, field(word, 16, 4), word >> 22 & 1, f); break;
    case 5:
        f->jumps = true;
        f->calls_function = word >> 24 & 1;
        break;
    default:
        if (field(word, 24, 4) == 0xf) {
            arm_special(f, ARM_SVC);
            f->jumps = f->calls = true;
        } else {
            arm_coprocessor(word, f);
        }
    }
    f->optional = word >> 28 != 0xe;
}

static bool is_tagged(uint32_t word, bool thumb, struct insn_facts *f)
{
    uint32_t nop = thumb ? 0xf3af80c0 : 0xe320f0c0, load = thumb ? 0xf81ccc00 : 0xe55cc000;

    if (word > nop && word < nop + MARK_KINDS)
        f->mark = word - nop;
    if (word == load) {
        f->argument = true;
        arm_accesses(f, 1, 0);
    }
    return f->mark || f->argument;
}

/* An instruction of an IT block is conditional. */
static void follow_it(uint32_t half, bool wide, struct stretch *s, struct insn_facts *f)
{
    bool is_it = !wide && half >> 8 == 0xbf && half & 15;

    if (is_it && half >> 4 != 0xbfe) {
        s->conditional = (uint8_t)(4 - __builtin_ctz(half));
    } else if (s->conditional) {
        s->conditional--;
        f->optional = true;
    }
}

/* Accesses that are not made always are counted one by one. A store to an exclusive may not be made either, nor is it told by one
 * access: it counts as one whether or not it succeeds, and whether or not its condition holds. */
static void settle_optional(struct insn_facts *f)
{
    f->optional = f->optional && f->loads + f->stores && !f->special;
    if (!f->optional)
        return;
    f->loads = f->loads > 0;
    f->stores = f->stores > 0;
    f->always_there = false; /* so that its group ends with it */
}

static bool is_wide(uint32_t half)
{
    return half >> 11 >= 0x1d;
}

static void classify(const uint8_t *bytes, size_t size, struct stretch *s, struct insn_facts *f)
{
    memset(f, 0, sizeof *f);
    if (size < 2 || (!s->thumb && size < 4))
        return;
    uint32_t first = half_at(bytes), second = size < 4 ? 0 : half_at(bytes + 2);
    bool wide = is_wide(first);

    if (!s->thumb) {
        if (!is_tagged(second << 16 | first, false, f))
            classify_a32(second << 16 | first, f);
    } else {
        if (!wide || !is_tagged(first << 16 | second, true, f))
            thumb_classify(first, second, f);
        follow_it(first, wide, s, f);
    }
    settle_optional(f);
}

/* Before QEMU's translator ends a block it may have had a look at the next instruction, which then counts as bytes of this one. */
static size_t insn_bytes(const uint8_t *bytes, size_t size, const struct stretch *s)
{
    if (!s->thumb)
        return size < 4 ? size : 4;
    return size >= 4 && is_wide(half_at(bytes)) ? 4 : 2;
}

/* Whether QEMU may have had that look after the instruction. */
static bool ends_page(const struct insn *insn)
{
    return insn->vaddr % 4096 == 4092;
}

/* Of a page, or of the kernel without its vectors as a whole: the instruction set of the last block there that can be of one only. */
static struct known { uint64_t place; bool is_known, thumb; } known[1024];

static struct known *known_at(uint64_t vaddr)
{
    bool in_kernel = vaddr >= arch_arm.kernel_start && vaddr < 0xffff0000;
    uint64_t place = (in_kernel ? arch_arm.kernel_start : vaddr) / 4096;
    struct known *k = &known[place % (sizeof known / sizeof *known)];

    if (k->place != place)
        *k = (struct known){ .place = place };
    return k;
}

static void remember(struct known *k, bool thumb)
{
    k->is_known = true;
    k->thumb = thumb;
}

/* Which instruction set it is, an instruction does not say, nor does QEMU. A block is Thumb code if only that can explain its
 * addresses, and A32 if some instruction is none of Thumb's wide ones. In between are stretches of wide instructions alone, as where an
 * interrupt cuts a block: they are what the code around them is. Where that is not known: they would be strange ones in A32 unless most
 * of them are unconditional. */
static void enter(struct stretch *s, const struct insn *insns, size_t n)
{
    struct known *k = known_at(insns->vaddr);
    unsigned unconditional = 0;
    bool wide = true;

    s->conditional = 0;
    s->thumb = true;
    for (size_t i = 0; i < n; i++) {
        const struct insn *insn = &insns[i];

        if (insn->vaddr & 2 || insn->size != 4) {
            remember(k, true);
            return;
        }
        unconditional += insn->bytes[3] >> 4 == 0xe;
        wide &= is_wide(half_at(insn->bytes)) || ends_page(insn);
    }
    if (!wide)
        remember(k, false);
    s->thumb = wide && (k->is_known ? k->thumb : 2 * unconditional < n);
}

/* Documentation/arch/arm/memory.rst: CONFIG_VMSPLIT_* gives the kernel what lies above a multiple of 256 MiB, and modules lie in the
 * 16 MiB below that. */
static uint64_t kernel_start_of(uint64_t text)
{
    return (text & ~UINT64_C(0x0fffffff)) - 0x01000000;
}

/* ARM Architecture Reference Manual (ARMv7-A and ARMv7-R), B3.18.7: by CRm of which TLB, and whether of all CPUs. */
static void name_tlb(uint32_t reg, char *name, size_t size)
{
    static const char *const of[8] = { [3] = "", [5] = "I", [6] = "D", [7] = "" };
    static const char *const what[8] = { "ALL", "MVA", "ASID", "MVAA", "?", "MVAL", "?", "MVAAL" };
    const char *which = of[reg >> 4 & 7];

    snprintf(name, size, "%sTLBI%s%s", which ? which : "?", what[reg & 7], (reg >> 4 & 15) == 3 ? "IS" : "");
}

static void name_detail(uint8_t kind, uint64_t detail, char *name, size_t size)
{
    uint32_t reg = (uint32_t)detail;

    if (kind == ARM_TLB)
        name_tlb(reg, name, size);
    else
        snprintf(name, size, "P15_%u_C%u_C%u_%u", reg >> 12 & 7, reg >> 8 & 15, reg >> 4 & 15, reg & 7);
}

const struct arch arch_arm = {
    .target_name = "arm",
    .kernel_start = 0xbf000000,
    .kernel_start_of = kernel_start_of,
    /* Documentation/arch/arm/kernel_user_helpers.rst */
    .helpers_start = 0xffff0f00,
    .helpers_bytes = 0x100,
    .page_bytes = 4096,
    .max_insn_bytes = 4,
    .special_names = special_names,
    .enter = enter,
    .insn_bytes = insn_bytes,
    .classify = classify,
    .name_detail = name_detail,
};
