/* SPDX-License-Identifier: GPL-2.0-or-later */
/* arm64: marks, special instructions, accesses and what can fault, derived from the bytes. */
#include <stdio.h>
#include <string.h>

#include "arch.h"

enum special {
    SP_NONE, SP_SVC, SP_ERET, SP_HVC, SP_SMC, SP_TRAP, SP_DAIF, SP_PSTATE, SP_TTBR, SP_THREAD_ID, SP_TIMER, SP_GIC,
    SP_EXCEPTION_STATE, SP_FP_CONTROL, SP_MRS, SP_MSR, SP_CACHE, SP_DC_ZVA, SP_TLB, SP_TRANSLATE, SP_SYS,
    SP_DMB, SP_DSB, SP_ISB, SP_SB, SP_CSDB, SP_ESB, SP_YIELD, SP_WFE, SP_WFI, SP_SEV,
    SP_LDXR, SP_STXR, SP_CLREX, SP_LDAR, SP_STLR, SP_ATOMIC,
};

static const char *const special_names[] = {
    "", "svc", "eret", "hvc", "smc", "trap", "daif", "pstate", "ttbr", "thread-id", "timer", "gic",
    "exception-state", "fp-control", "mrs", "msr", "cache-maintenance", "dc-zva", "tlb-maintenance", "address-translation",
    "sys", "dmb", "dsb", "isb", "sb", "csdb", "esb", "yield", "wfe", "wfi", "sev",
    "ldxr", "stxr", "clrex", "ldar", "stlr", "atomic", NULL,
};

enum { SP = 31, FRAME_POINTER = 29 };

/* Op0, op1, CRn, CRm and op2 of a system register, as they stand in an instruction. */
#define REGISTER(op0, op1, crn, crm, op2) ((op0) << 14 | (op1) << 11 | (crn) << 7 | (crm) << 3 | (op2))

static const struct { uint16_t reg; uint8_t special; } registers[] = {
    { REGISTER(3, 3, 4, 2, 1), SP_DAIF },
    { REGISTER(3, 0, 2, 0, 0), SP_TTBR }, { REGISTER(3, 0, 2, 0, 1), SP_TTBR }, { REGISTER(3, 0, 13, 0, 1), SP_TTBR },
    { REGISTER(3, 0, 4, 1, 0), SP_THREAD_ID }, { REGISTER(3, 0, 13, 0, 4), SP_THREAD_ID }, /* sp_el0: Linux's current */
    { REGISTER(3, 3, 13, 0, 2), SP_THREAD_ID }, { REGISTER(3, 3, 13, 0, 3), SP_THREAD_ID },
    { REGISTER(3, 0, 4, 6, 0), SP_GIC },
    { REGISTER(3, 0, 4, 0, 0), SP_EXCEPTION_STATE }, { REGISTER(3, 0, 4, 0, 1), SP_EXCEPTION_STATE },
    { REGISTER(3, 0, 5, 2, 0), SP_EXCEPTION_STATE }, { REGISTER(3, 0, 6, 0, 0), SP_EXCEPTION_STATE },
    { REGISTER(3, 3, 4, 4, 0), SP_FP_CONTROL }, { REGISTER(3, 3, 4, 4, 1), SP_FP_CONTROL },
};

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

static void moves(struct insn_facts *f, bool load, unsigned times)
{
    accesses(f, load ? times : 0, load ? 0 : times);
}

static void special(struct insn_facts *f, enum special kind)
{
    f->special = kind;
    f->can_fault = true;
}

static enum special register_kind(uint32_t word)
{
    uint32_t reg = field(word, 5, 16), crn = field(word, 12, 4), crm = field(word, 8, 4);

    for (size_t i = 0; i < sizeof registers / sizeof *registers; i++)
        if (registers[i].reg == reg)
            return registers[i].special;
    if (crn == 14)
        return SP_TIMER;
    if (crn == 12 && crm >= 8)
        return SP_GIC;
    return word >> 21 & 1 ? SP_MRS : SP_MSR;
}

static enum special maintenance_kind(uint32_t word)
{
    uint32_t op1 = field(word, 16, 3), crn = field(word, 12, 4), crm = field(word, 8, 4);

    if (crn == 8 || crn == 9)
        return SP_TLB;
    if (crn != 7)
        return SP_SYS;
    if (crm == 8 || crm == 9)
        return SP_TRANSLATE;
    return op1 == 3 && crm == 4 && field(word, 5, 3) == 1 ? SP_DC_ZVA : crm == 3 ? SP_SYS : SP_CACHE;
}

static void classify_hint(uint32_t number, struct insn_facts *f)
{
    static const uint8_t by_number[0x15] = {
        [1] = SP_YIELD, [2] = SP_WFE, [3] = SP_WFI, [4] = SP_SEV, [5] = SP_SEV, [0x10] = SP_ESB, [0x14] = SP_CSDB,
    };

    if (number < sizeof by_number && by_number[number])
        special(f, by_number[number]);
    f->jumps = f->special == SP_WFI || f->special == SP_WFE;
}

static void classify_barrier(uint32_t word, struct insn_facts *f)
{
    static const uint8_t by_op2[8] = {
        [1] = SP_DSB, [2] = SP_CLREX, [4] = SP_DSB, [5] = SP_DMB, [6] = SP_ISB, [7] = SP_SB,
    };

    special(f, by_op2[field(word, 5, 3)]);
}

static void classify_system(uint32_t word, struct insn_facts *f)
{
    uint32_t op0 = field(word, 19, 2), op1 = field(word, 16, 3), crn = field(word, 12, 4);

    if (op0 >= 2) {
        special(f, register_kind(word));
        if (f->special == SP_MRS || f->special == SP_MSR)
            f->detail = field(word, 5, 16);
    } else if (op0 == 1) {
        special(f, maintenance_kind(word));
        if (f->special == SP_TLB && !op1)
            f->detail = field(word, 5, 16);
        if (f->special == SP_DC_ZVA)
            accesses(f, 0, 1);
    } else if (crn == 2) {
        classify_hint(field(word, 5, 7), f);
    } else if (crn == 3) {
        classify_barrier(word, f);
    } else if (crn == 4) {
        bool daif = op1 == 3 && field(word, 6, 2) == 3;

        special(f, daif ? SP_DAIF : SP_PSTATE);
    } else {
        f->can_fault = true;
    }
}

static void classify_exception(uint32_t word, struct insn_facts *f)
{
    static const uint8_t calls[4] = { SP_TRAP, SP_SVC, SP_HVC, SP_SMC };

    special(f, field(word, 21, 3) ? SP_TRAP : calls[word & 3]);
    f->calls = f->special == SP_SVC;
    f->jumps = true;
}

static void classify_branch(uint32_t word, struct insn_facts *f)
{
    switch (word >> 24) {
    case 0xd4: classify_exception(word, f); break;
    case 0xd5: classify_system(word, f); break;
    case 0xd6: case 0xd7:
        f->jumps = true;
        f->calls_function = field(word, 21, 3) == 1; /* blr, and with authentication; likewise ret */
        f->returns = field(word, 21, 3) == 2;
        if (field(word, 21, 4) == 4) {
            special(f, SP_ERET);
            f->frame_return = f->leaves_kernel = true;
        }
        break;
    default:
        f->jumps = true;
        f->calls_function = word >> 26 == 0x25; /* bl */
    }
}

/* ld1 to ld4, st1 to st4, by the registers that they move; an element of a register counts as one. */
static void classify_structures(uint32_t word, struct insn_facts *f)
{
    static const uint8_t multiple[16] = { [0] = 4, [2] = 4, [4] = 3, [6] = 3, [7] = 1, [8] = 2, [10] = 2 };
    unsigned single = (field(word, 13, 1) << 1 | field(word, 21, 1)) + 1;

    moves(f, word >> 22 & 1, word >> 24 & 1 ? single : multiple[field(word, 12, 4)]);
}

static void classify_exclusive(uint32_t word, struct insn_facts *f)
{
    bool ordered = word >> 23 & 1, load = word >> 22 & 1, pair = word >> 21 & 1;

    if (pair && (ordered || !(word >> 31))) { /* cas, casp */
        special(f, SP_ATOMIC);
        accesses(f, ordered ? 1 : 2, ordered ? 1 : 2);
        return;
    }
    if (ordered)
        special(f, load ? SP_LDAR : SP_STLR);
    else
        special(f, load ? SP_LDXR : SP_STXR);
    moves(f, load, pair ? 2 : 1);
}

static void classify_atomic(uint32_t word, struct insn_facts *f)
{
    if ((word & 0x0000fc00) == 0xc000) { /* ldapr */
        special(f, SP_LDAR);
        moves(f, true, 1);
    } else {
        special(f, SP_ATOMIC);
        accesses(f, 1, 1);
    }
}

static void classify_pair(uint32_t word, struct insn_facts *f)
{
    bool load = word >> 22 & 1, saves_stack = word >> 30 == 2 && !(word >> 26 & 1) && field(word, 0, 5) == FRAME_POINTER;

    moves(f, load, 2);
    f->switch_store = saves_stack && !load;
    f->switch_load = saves_stack && load;
}

static void classify_single(uint32_t word, struct insn_facts *f)
{
    uint32_t size = word >> 30, opc = field(word, 22, 2);
    bool vector = word >> 26 & 1, in_register = !(word >> 24 & 1) && word >> 21 & 1;

    if (in_register && !field(word, 10, 2))
        classify_atomic(word, f);
    else if (in_register && word >> 10 & 1)
        moves(f, true, 1); /* ldraa, ldrab */
    else if (!vector && size == 3 && opc == 2)
        return; /* prfm */
    else
        moves(f, vector ? opc & 1 : opc != 0, 1);
}

static void classify_access(uint32_t word, struct insn_facts *f)
{
    uint32_t group = field(word, 24, 6);

    f->can_fault = true;
    f->always_there = field(word, 5, 5) == SP;
    if ((word & 0xbe000000) == 0x0c000000) {
        classify_structures(word, f);
    } else if (group == 0x08) {
        classify_exclusive(word, f);
    } else if ((group & 0x3b) == 0x18) {
        f->always_there = true;
        moves(f, true, !(word >> 30 == 3 && !(word >> 26 & 1)));
        f->can_fault = f->loads;
    } else if (group == 0x19 && !(word >> 21 & 1)) { /* ldapur, stlur */
        special(f, field(word, 22, 2) ? SP_LDAR : SP_STLR);
        moves(f, field(word, 22, 2), 1);
    } else if ((group & 0x3a) == 0x28) {
        classify_pair(word, f);
    } else if ((group & 0x3a) == 0x38) {
        f->can_fault = false;
        classify_single(word, f);
    }
    f->always_there = f->always_there && !f->special;
}

static bool is_tagged(uint32_t word, struct insn_facts *f)
{
    uint32_t mark = word ^ (0xd280001f | 0x4b60 << 5);

    if (!(mark & ~(15u << 5)) && mark >> 5 > MARK_NONE && mark >> 5 < MARK_KINDS) {
        f->mark = mark >> 5;
        return true;
    }
    if ((word & ~(31u << 5)) == (0x3840001f | 0x4b << 12)) {
        f->argument = true;
        accesses(f, 1, 0);
        return true;
    }
    return false;
}

/* Arm Architecture Reference Manual for A-profile, C4.1: by bits 28 to 25. */
static void classify(const uint8_t *bytes, size_t size, struct stretch *stretch, struct insn_facts *f)
{
    (void)stretch;
    memset(f, 0, sizeof *f);
    f->can_fault = true;
    if (size < 4)
        return;
    uint32_t word =
        (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;

    f->can_fault = false;
    if (is_tagged(word, f))
        return;
    switch (field(word, 25, 4)) {
    case 8: case 9: case 5: case 13: return; /* on immediates and registers */
    case 10: case 11:
        classify_branch(word, f);
        return;
    case 4: case 6: case 12: case 14: classify_access(word, f); return;
    case 0:
        if (word >> 16 == 0) {
            special(f, SP_TRAP); /* udf */
            f->jumps = true;
        }
    }
    f->can_fault = true; /* floating point, vectors, and what is not known */
}

/* By CRm: of which CPUs, and whether of a range. By op2: of what. */
static void name_tlb(uint32_t reg, char *name, size_t size)
{
    static const char *const shared[8] = { "", "OS", "IS", "IS", "", "OS", "", "" };
    static const char *const what[8] = { "VMALLE1", "VAE1", "ASIDE1", "VAAE1", "?", "VALE1", "?", "VAALE1" };
    unsigned crn = reg >> 7 & 15, crm = reg >> 3 & 7;
    bool range = crm == 2 || crm == 5 || crm == 6;

    snprintf(name, size, "%s%s%s%s", range ? "R" : "", what[reg & 7], shared[crm], crn == 9 ? "NXS" : "");
}

static void name_detail(uint8_t kind, uint64_t detail, char *name, size_t size)
{
    uint32_t reg = (uint32_t)detail;

    if (kind == SP_TLB)
        name_tlb(reg, name, size);
    else
        snprintf(name, size, "S%u_%u_C%u_C%u_%u", reg >> 14, reg >> 11 & 7, reg >> 7 & 15, reg >> 3 & 15, reg & 7);
}

const struct arch arch_aarch64 = {
    .target_name = "aarch64",
    .kernel_start = UINT64_C(1) << 63,
    .page_bytes = 4096,
    .max_insn_bytes = 4,
    .special_names = special_names,
    .classify = classify,
    .name_detail = name_detail,
};
