/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What QEMU tells of a translation's instructions, and what the architecture makes of it. */
#include "insn.h"

#include "memory.h"
#include "qemu_api.h"

#define LONGEST_BYTES 16 /* x86's are of 15 at most */

const struct insn *insns_of(const struct qemu_plugin_tb *tb, const struct arch *arch)
{
    static struct insn *insns;
    static uint8_t (*bytes)[LONGEST_BYTES];
    static size_t capacity;
    size_t n = qemu_plugin_tb_n_insns(tb);
    struct stretch stretch = { 0 };

    if (n > capacity) {
        capacity = 2 * n;
        insns = must(realloc(insns, capacity * sizeof *insns));
        bytes = must(realloc(bytes, capacity * sizeof *bytes));
    }
    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

        insns[i].vaddr = qemu_plugin_insn_vaddr(insn);
        insns[i].size = qemu_plugin_insn_size(insn);
        insns[i].bytes = insn_data(insn, bytes[i], LONGEST_BYTES);
    }
    if (arch->enter)
        arch->enter(&stretch, insns, n);
    for (size_t i = 0; i < n; i++) {
        if (arch->insn_bytes)
            insns[i].size = arch->insn_bytes(insns[i].bytes, insns[i].size, &stretch);
        arch->classify(insns[i].bytes, insns[i].size, &stretch, &insns[i].facts);
    }
    return insns;
}
