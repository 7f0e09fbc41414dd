/* SPDX-License-Identifier: GPL-2.0-or-later */
/* arm64: marks, special instructions, accesses and what can fault, told from the bytes. */
#include <string.h>

#include "arch.h"

static const char *const special_names[] = { "", NULL };

static bool is_tagged(uint32_t word, struct insn_facts *f)
{
    uint32_t mark = word ^ (0xd280001f | 0x4b60 << 5);

    if (!(mark & ~(15u << 5)) && mark >> 5 > MARK_NONE && mark >> 5 < MARK_KINDS) {
        f->mark = mark >> 5;
        return true;
    }
    if ((word & ~(31u << 5)) == (0x3840001f | 0x4b << 12)) {
        f->argument = f->can_fault = true;
        f->loads = 1;
        return true;
    }
    return false;
}

static void classify(const uint8_t *bytes, size_t size, struct stretch *stretch, struct insn_facts *f)
{
    (void)stretch;
    memset(f, 0, sizeof *f);
    f->can_fault = true;
    if (size != 4)
        return;
    uint32_t word =
        (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;

    f->can_fault = !is_tagged(word, f) || f->argument;
}


const struct arch arch_aarch64 = {
    .target_name = "aarch64",
    .kernel_start = UINT64_C(1) << 63,
    .page_bytes = 4096,
    .max_insn_bytes = 4,
    .special_names = special_names,
    .classify = classify,
};
