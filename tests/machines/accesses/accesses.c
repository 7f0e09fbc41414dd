/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A plugin of QEMU besides kdelta's: every access of kernel code in a region, one after the other, as it is made.
 *
 * out=FILE: records of 40 bytes, little-endian: u64 instruction, u64 virtual and u64 physical address, u64 where QEMU has the state of
 * the CPU (in rbp, when translated code of an x86-64 host begins a block), u32 size, u32 1 for a store. One without an instruction begins a
 * region.
 */
#include <stdio.h>
#include <string.h>

#include "qemu_api.h"

#define BEGIN 2
#define END 4

__attribute__((visibility("default"))) int qemu_plugin_version = PLUGIN_API;

struct record {
    uint64_t insn, vaddr, physical, cpu;
    uint32_t size, is_store;
};

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, void (*cb)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb));
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *copy, size_t size);

static FILE *out;
static bool active;
static uint64_t cpu;

static void write_record(const struct record *record)
{
    fwrite(record, sizeof *record, 1, out);
}

static void at_mark(unsigned int vcpu, void *kind)
{
    const struct record begins = { 0 };

    (void)vcpu;
    active = (uintptr_t)kind == BEGIN;
    if (active)
        write_record(&begins);
    fflush(out);
}

static void at_access(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *insn)
{
    struct qemu_plugin_hwaddr *address = qemu_plugin_get_hwaddr(info, vaddr);

    (void)vcpu;
    if (!active || !address || qemu_plugin_hwaddr_is_io(address))
        return;
    write_record(&(struct record){ (uintptr_t)insn, vaddr, qemu_plugin_hwaddr_phys_addr(address), cpu,
                                   1u << qemu_plugin_mem_size_shift(info), qemu_plugin_mem_is_store(info) });
}

__attribute__((used)) static void note_cpu(uint64_t state)
{
    cpu = state;
}

/* In an access that one of QEMU's functions makes, the register has something else. */
static __attribute__((naked)) void at_block(unsigned int vcpu, void *unused)
{
    (void)vcpu, (void)unused;
    __asm__("mov %rbp, %rdi\n\t"
            "jmp note_cpu");
}

/* nopl 0x4b640000+KIND(%rax) */
static unsigned mark_of(const struct qemu_plugin_insn *insn)
{
    uint8_t bytes[7];
    uint32_t displacement;

    if (qemu_plugin_insn_data(insn, bytes, sizeof bytes) != sizeof bytes || memcmp(bytes, "\x0f\x1f\x80", 3))
        return 0;
    memcpy(&displacement, bytes + 3, sizeof displacement);
    return displacement >> 16 == 0x4b64 ? displacement & 0xffff : 0;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_cb(tb, at_block, QEMU_PLUGIN_CB_NO_REGS, NULL);
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint64_t vaddr = qemu_plugin_insn_vaddr(insn);
        unsigned mark = mark_of(insn);

        if (mark == BEGIN || mark == END)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, at_mark, QEMU_PLUGIN_CB_NO_REGS, (void *)(uintptr_t)mark);
        if (vaddr >> 63)
            qemu_plugin_register_vcpu_mem_cb(insn, at_access, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, (void *)(uintptr_t)vaddr);
    }
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
    (void)info;
    out = argc == 1 && !strncmp(argv[0], "out=", 4) ? fopen(argv[0] + 4, "wb") : NULL;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return !out;
}
