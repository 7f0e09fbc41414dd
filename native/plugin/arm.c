/* SPDX-License-Identifier: GPL-2.0-or-later */
/* 32-bit ARM: marks, special instructions, accesses and what can fault, told from the bytes of A32 and Thumb-2 code. */
#include <string.h>

#include "arch.h"

static const char *const special_names[] = { "", NULL };

static uint32_t word_at(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static bool is_tagged(const uint8_t *bytes, size_t size, struct insn_facts *f)
{
    uint32_t word;

    if (size != 4)
        return false;
    word = word_at(bytes);
    if ((word & ~15u) == 0xe320f0c0 || (word & ~(15u << 16)) == 0x80c0f3af) {
        unsigned kind = (word >> 28 == 0xe ? word : word >> 16) & 15;

        f->mark = kind < MARK_KINDS ? kind : MARK_NONE;
        return f->mark;
    }
    if (word == 0xe55cc000 || word == 0xcc00f81c) {
        f->argument = f->can_fault = true;
        f->loads = 1;
        return true;
    }
    return false;
}

static void classify(const uint8_t *bytes, size_t size, struct insn_facts *f)
{
    memset(f, 0, sizeof *f);
    if (is_tagged(bytes, size, f))
        return;
    f->can_fault = true;
}

/* Documentation/arch/arm/memory.rst: CONFIG_VMSPLIT_* gives the kernel what lies above a multiple of 256 MiB, and modules lie in the
 * 16 MiB below that. */
static uint64_t kernel_start_of(uint64_t text)
{
    return (text & ~UINT64_C(0x0fffffff)) - 0x01000000;
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
    .classify = classify,
};
