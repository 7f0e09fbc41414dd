/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What A32 (arm.c) and Thumb-2 (thumb.c) have in common: kinds of special instructions, coprocessors, VFP and hints. */
#ifndef KDELTA_ARM_INSN_H
#define KDELTA_ARM_INSN_H

#include "arch.h"

enum arm_special {
    ARM_NONE, ARM_SVC, ARM_EXCEPTION_RETURN, ARM_SRS, ARM_TRAP, ARM_HVC, ARM_SMC, ARM_CPS, ARM_SETEND, ARM_MRS, ARM_MSR,
    ARM_CACHE, ARM_TLB, ARM_CP15_BARRIER, ARM_THREAD_ID, ARM_CP15_READ, ARM_CP15_WRITE, ARM_TIMER, ARM_COPROCESSOR,
    ARM_DMB, ARM_DSB, ARM_ISB, ARM_SB, ARM_CSDB, ARM_YIELD, ARM_WFE, ARM_WFI, ARM_SEV, ARM_LDREX, ARM_STREX, ARM_CLREX,
    ARM_LDA, ARM_STL, ARM_SWP, ARM_VFP_SYSTEM,
};

enum { ARM_SP = 13, ARM_LR = 14, ARM_PC = 15 };

static inline unsigned field(uint32_t word, unsigned lowest, unsigned bits)
{
    return word >> lowest & ((1u << bits) - 1);
}

/* Memory operands that the instruction reads and writes. */
static inline void arm_accesses(struct insn_facts *f, unsigned loads, unsigned stores)
{
    f->loads = (uint8_t)loads;
    f->stores = (uint8_t)stores;
    f->can_fault = true;
}

static inline void arm_moves(struct insn_facts *f, bool load, unsigned times)
{
    arm_accesses(f, load ? times : 0, load ? 0 : times);
}

static inline void arm_special(struct insn_facts *f, enum arm_special kind)
{
    f->special = kind;
    f->can_fault = true;
}

/* ldm and stm in all their forms; with_spsr: the form with ^. */
void arm_multiple(uint32_t list, bool load, unsigned base, bool with_spsr, struct insn_facts *f);
void arm_exception_return(struct insn_facts *f);
void arm_srs_rfe(bool rfe, struct insn_facts *f);
void arm_hint(unsigned number, struct insn_facts *f);
void arm_barrier(unsigned option, struct insn_facts *f);
/* The low half of the encoding space of ldrex, strex, lda and stl: what they are to bits 11 and 10. */
void arm_exclusive(bool load, bool exclusive, bool pair, struct insn_facts *f);
/* From bit 27 down alike in A32 and Thumb-2: 110 and 1110, coprocessors, VFP and what of NEON lies there. */
void arm_coprocessor(uint32_t word, struct insn_facts *f);
/* vld1 to vld4, vst1 to vst4. */
void arm_neon_access(uint32_t word, struct insn_facts *f);

void thumb_classify(uint32_t first, uint32_t second, struct insn_facts *f);

#endif
