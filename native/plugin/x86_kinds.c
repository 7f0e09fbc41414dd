/* SPDX-License-Identifier: GPL-2.0-or-later */
/* x86-64: which MSR, port or control register a special instruction is for, and the names of these. */
#include <inttypes.h>
#include <stdio.h>

#include "x86_special.h"

const char *const x86_special_names[] = {
    "", "syscall", "sysret", "sysenter", "sysexit", "iret", "int", "swapgs", "rdmsr", "wrmsr", "mov-cr", "mov-dr",
    "invlpg", "invpcid", "cpuid", "verw", "lock", "pause", "lfence", "mfence", "sfence", "xsave", "xrstor",
    "segment-load", "lgdt", "lidt", "lldt", "ltr", "wrfsbase", "wrgsbase", "rdtsc", "rdpmc", "clflush", "monitor",
    "mwait", "far-transfer", "hlt", "in", "out", "wbinvd", "xsetbv", "rdrand", "stac-clac", "cli-sti", "write-cr3", NULL,
};

/* What of an MSR's value decides what it costs, next to its number. */
#define DETAIL_VALUE(value) ((uint64_t)(value) << 32)
enum { FLUSH = 1, NO_FLUSH };

enum msr { SPEC_CTRL = 0x48, PRED_CMD = 0x49, FLUSH_CMD = 0x10b };

/* Linux, arch/x86/include/asm/msr-index.h; Intel SDM, volume 4; AMD APM, volume 2, appendix A. */
static const struct { uint32_t number; const char *name; } msrs[] = {
    { 0x10, "TSC" }, { 0x1b, "APIC_BASE" }, { 0x3b, "TSC_ADJUST" },
    { SPEC_CTRL, "SPEC_CTRL" }, { PRED_CMD, "PRED_CMD" }, { FLUSH_CMD, "FLUSH_CMD" },
    { 0x8b, "UCODE_REV" }, { 0xe1, "UMWAIT_CONTROL" }, { 0x122, "TSX_CTRL" }, { 0x123, "MCU_OPT_CTRL" },
    { 0x140, "MISC_FEATURES_ENABLES" }, { 0x174, "SYSENTER_CS" }, { 0x175, "SYSENTER_ESP" }, { 0x176, "SYSENTER_EIP" },
    { 0x199, "PERF_CTL" }, { 0x19c, "THERM_STATUS" }, { 0x1a0, "MISC_ENABLE" }, { 0x1b0, "ENERGY_PERF_BIAS" },
    { 0x1c4, "XFD" }, { 0x1c5, "XFD_ERR" }, { 0x1c8, "LBR_SELECT" }, { 0x1d9, "DEBUGCTL" }, { 0x277, "PAT" },
    { 0x38d, "FIXED_CTR_CTRL" }, { 0x38e, "PERF_GLOBAL_STATUS" }, { 0x38f, "PERF_GLOBAL_CTRL" }, { 0x390, "PERF_GLOBAL_OVF_CTRL" },
    { 0x600, "DS_AREA" }, { 0x6a0, "U_CET" }, { 0x6a2, "S_CET" }, { 0x6a7, "PL3_SSP" }, { 0x6e0, "TSC_DEADLINE" },
    { 0x774, "HWP_REQUEST" }, { 0xd90, "BNDCFGS" }, { 0xda0, "XSS" },
    { 0x802, "x2APIC ID" }, { 0x808, "x2APIC TPR" }, { 0x80b, "x2APIC EOI" }, { 0x830, "x2APIC ICR" }, { 0x832, "x2APIC LVTT" },
    { 0x838, "x2APIC TMICT" }, { 0x839, "x2APIC TMCCT" }, { 0x83f, "x2APIC SELF_IPI" },
    { 0xc0000080, "EFER" }, { 0xc0000081, "STAR" }, { 0xc0000082, "LSTAR" }, { 0xc0000083, "CSTAR" }, { 0xc0000084, "SYSCALL_MASK" },
    { 0xc0000100, "FS_BASE" }, { 0xc0000101, "GS_BASE" }, { 0xc0000102, "KERNEL_GS_BASE" }, { 0xc0000103, "TSC_AUX" },
    { 0xc00000e7, "MPERF" }, { 0xc00000e8, "APERF" }, { 0xc0010015, "HWCR" }, { 0xc0010114, "VM_CR" }, { 0xc0010117, "VM_HSAVE_PA" },
    { 0xc001011f, "VIRT_SPEC_CTRL" }, { 0xc0011020, "LS_CFG" }, { 0xc0011029, "DE_CFG" }, { 0xc00102b3, "CPPC_REQ" },
};

static const char *const registers[16] = {
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
};

/* Which barrier a write of a command is; 0: not one of these. */
static const struct { uint32_t number, bit; const char *name; } commands[] = {
    { PRED_CMD, 1 << 0, "IBPB" }, { PRED_CMD, 1 << 7, "SBPB" }, { FLUSH_CMD, 1 << 0, "L1D" },
};

static uint64_t msr_detail(const struct insn_facts *facts, uint64_t (*value)(const char *reg))
{
    uint32_t number = (uint32_t)value(registers[1]);

    for (size_t i = 0; facts->special == SP_WRMSR && i < sizeof commands / sizeof *commands; i++)
        if (commands[i].number == number && value(registers[0]) & commands[i].bit)
            return DETAIL_VALUE(commands[i].bit) | number;
    return number;
}

uint64_t x86_detail(const struct insn_facts *facts, uint64_t (*value)(const char *reg))
{
    if (facts->reads == READS_MSR)
        return msr_detail(facts, value);
    if (facts->reads == READS_PORT)
        return PORT_DETAIL((uint32_t)value(registers[2]) & 0xffff);
    return value(registers[facts->reads - READS_CR3]) >> 63 ? NO_FLUSH : FLUSH;
}

/* QEMU 10 has no name for it. */
const char *x86_device_at(uint64_t address)
{
    return address >> 10 == 0xfed00000 >> 10 ? "hpet" : NULL;
}

static const char *msr_name(uint32_t number)
{
    for (size_t i = 0; i < sizeof msrs / sizeof *msrs; i++)
        if (msrs[i].number == number)
            return msrs[i].name;
    return NULL;
}

static void name_msr(uint64_t detail, char *name, size_t size)
{
    uint32_t number = (uint32_t)detail;
    const char *known = msr_name(number);

    if (!known) {
        snprintf(name, size, "0x%" PRIx32, number);
        return;
    }
    for (size_t i = 0; detail >> 32 && i < sizeof commands / sizeof *commands; i++)
        if (commands[i].number == number && commands[i].bit == detail >> 32) {
            snprintf(name, size, "%s (%s)", known, commands[i].name);
            return;
        }
    snprintf(name, size, "%s", known);
}

void x86_name_detail(uint8_t special, uint64_t detail, char *name, size_t size)
{
    if (special == SP_WRMSR || special == SP_RDMSR)
        name_msr(detail, name, size);
    else if (special == SP_IN || special == SP_OUT)
        snprintf(name, size, "0x%" PRIx64, detail & 0xffff);
    else if (special == SP_WRITE_CR3)
        snprintf(name, size, detail == FLUSH ? "flush" : "no-flush");
    else if (detail == CLTS_DETAIL)
        snprintf(name, size, "clts");
    else
        snprintf(name, size, "%s CR%" PRIu64, detail >> 4 & 1 ? "write" : "read", detail & 15);
}
