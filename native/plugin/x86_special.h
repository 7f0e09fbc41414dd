/* SPDX-License-Identifier: GPL-2.0-or-later */
/* x86-64: the kinds of special instructions, in the order of their names. */
#ifndef KDELTA_X86_SPECIAL_H
#define KDELTA_X86_SPECIAL_H

#include "arch.h"

enum special {
    SP_NONE, SP_SYSCALL, SP_SYSRET, SP_SYSENTER, SP_SYSEXIT, SP_IRET, SP_INT, SP_SWAPGS, SP_RDMSR, SP_WRMSR,
    SP_MOV_CR, SP_MOV_DR, SP_INVLPG, SP_INVPCID, SP_CPUID, SP_VERW, SP_LOCK, SP_PAUSE, SP_LFENCE, SP_MFENCE,
    SP_SFENCE, SP_XSAVE, SP_XRSTOR, SP_SEGMENT, SP_LGDT, SP_LIDT, SP_LLDT, SP_LTR, SP_WRFSBASE, SP_WRGSBASE, SP_RDTSC,
    SP_RDPMC, SP_CLFLUSH, SP_MONITOR, SP_MWAIT, SP_FAR, SP_HLT, SP_IN, SP_OUT, SP_WBINVD, SP_XSETBV, SP_RDRAND,
    SP_STAC_CLAC, SP_CLI_STI, SP_WRITE_CR3,
};

/* Which of its kind an instruction is that registers say: by the MSR in ecx, by the port in dx, by the value for CR3 in a register,
 * READS_CR3 + its number.
 */
enum { READS_NOTHING, READS_MSR, READS_PORT, READS_CR3 };

/* What tells ports and control registers from "not distinguished", which is 0. */
#define PORT_DETAIL(port) (UINT32_C(1) << 16 | (port))
#define CR_DETAIL(is_write, number) (UINT32_C(1) << 5 | (is_write) << 4 | (number))
#define CLTS_DETAIL (UINT32_C(1) << 6)

extern const char *const x86_special_names[];

uint64_t x86_detail(const struct insn_facts *facts, uint64_t (*value)(const char *reg));
const char *x86_device_at(uint64_t address);
void x86_name_detail(uint8_t special, uint64_t detail, char *name, size_t size);

#endif
