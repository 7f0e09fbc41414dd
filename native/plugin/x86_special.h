/* SPDX-License-Identifier: GPL-2.0-or-later */
/* x86-64: the kinds of special instructions, and their names in the output, in one order. */
#ifndef KDELTA_X86_SPECIAL_H
#define KDELTA_X86_SPECIAL_H

#include <stdint.h>

enum special {
    SP_NONE, SP_SYSCALL, SP_SYSRET, SP_SYSENTER, SP_SYSEXIT, SP_IRET, SP_INT, SP_SWAPGS, SP_RDMSR, SP_WRMSR,
    SP_MOV_CR, SP_MOV_DR, SP_INVLPG, SP_INVPCID, SP_CPUID, SP_VERW, SP_LOCK, SP_PAUSE, SP_LFENCE, SP_MFENCE,
    SP_SFENCE, SP_XSAVE, SP_XRSTOR, SP_SEGMENT, SP_LGDT, SP_LIDT, SP_LLDT, SP_LTR, SP_WRFSBASE, SP_WRGSBASE, SP_RDTSC,
    SP_RDPMC, SP_CLFLUSH, SP_MONITOR, SP_MWAIT, SP_FAR, SP_HLT, SP_PORT_IO, SP_WBINVD, SP_XSETBV, SP_RDRAND,
    SP_STAC_CLAC, SP_CLI_STI, SP_WRITE_CR3,
};

static const char *const special_names[] = {
    "", "syscall", "sysret", "sysenter", "sysexit", "iret", "int", "swapgs", "rdmsr", "wrmsr", "mov-cr", "mov-dr",
    "invlpg", "invpcid", "cpuid", "verw", "lock", "pause", "lfence", "mfence", "sfence", "xsave", "xrstor",
    "segment-load", "lgdt", "lidt", "lldt", "ltr", "wrfsbase", "wrgsbase", "rdtsc", "rdpmc", "clflush", "monitor",
    "mwait", "far-transfer", "hlt", "port-io", "wbinvd", "xsetbv", "rdrand", "stac-clac", "cli-sti", "write-cr3", NULL,
};

/* Those whose privilege QEMU checks when it translates them (and int, whose gate it checks later). */
static const uint8_t checked_first[] = {
    SP_HLT, SP_CLI_STI, SP_RDMSR, SP_WRMSR, SP_LLDT, SP_LTR, SP_LGDT, SP_LIDT, SP_INVLPG, SP_SWAPGS, SP_XSETBV, SP_WBINVD,
    SP_MOV_CR, SP_WRITE_CR3, SP_MOV_DR, SP_INT,
#if PLUGIN_API >= 3 /* since QEMU 9.1 */
    SP_SYSRET,
#endif
};

#endif
