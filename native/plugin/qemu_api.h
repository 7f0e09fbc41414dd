/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The part of QEMU's TCG plugin interface that kdelta uses; QEMU's header is seldom packaged.
 *
 * kdelta asks an emulator which versions of the interface it takes, and compiles the plugin for the newest (PLUGIN_API):
 *
 *     1       QEMU 7.2 to 8.2
 *     2       QEMU 9.0: additions in translated code are to entries of scoreboards, of which each CPU has its own; registers can be read
 *     3       QEMU 9.1: an instruction's bytes are copied
 *     4 to 6  QEMU 10.0 to 11.0: the guest's memory can be read
 *     7       QEMU 11.1, which takes no earlier one: some callbacks get the caller's data in place of the plugin's id
 *
 * qemu_api.c hides the differences: the functions without the prefix qemu_plugin_.
 */
#ifndef KDELTA_QEMU_API_H
#define KDELTA_QEMU_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "glib_api.h"

#if !defined PLUGIN_API || PLUGIN_API < 1 || PLUGIN_API > 7
#error "PLUGIN_API is to be the version of QEMU's plugin interface, from 1 to 7"
#endif

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;

typedef struct {
    const char *target_name;
    struct { int min, cur; } version;
    bool system_emulation;
    struct { int smp_vcpus, max_vcpus; } system;
} qemu_info_t;

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS = 0, QEMU_PLUGIN_CB_R_REGS = 1 };
/* NONE is not in QEMU's header; no access is of its kind. */
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_NONE, QEMU_PLUGIN_MEM_R, QEMU_PLUGIN_MEM_W, QEMU_PLUGIN_MEM_RW };
/* Before 9.1 QEMU lets pass to R what are stores, and to W all. */
#define STORES_ONLY (PLUGIN_API < 3 ? QEMU_PLUGIN_MEM_R : QEMU_PLUGIN_MEM_W)

typedef void (*qemu_plugin_exec_cb_t)(unsigned int vcpu, void *data);
typedef void (*qemu_plugin_mem_cb_t)(unsigned int vcpu, qemu_plugin_meminfo_t info,
                                     uint64_t vaddr, void *data);

void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, qemu_plugin_exec_cb_t cb,
                                          enum qemu_plugin_cb_flags flags, void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
                                            qemu_plugin_exec_cb_t cb,
                                            enum qemu_plugin_cb_flags flags, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, qemu_plugin_mem_cb_t cb,
                                      enum qemu_plugin_cb_flags flags,
                                      enum qemu_plugin_mem_rw rw, void *data);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *insn); /* where its bytes are in QEMU's memory */
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t vaddr);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *address);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *address);
const char *qemu_plugin_hwaddr_device_name(const struct qemu_plugin_hwaddr *address); /* the same pointer each time */

#if PLUGIN_API >= 4
bool qemu_plugin_read_memory_vaddr(uint64_t vaddr, glib_byte_array *data, size_t size); /* of the CPU that executes */
#endif

/* When there is a CPU; whenever code is translated; when QEMU ends. The last one that was registered is called. */
void at_new_cpu(qemu_plugin_id_t id, void (*begin)(void));
void at_translation(qemu_plugin_id_t id, void (*translate)(struct qemu_plugin_tb *tb));
void at_end(qemu_plugin_id_t id, void (*end)(void));
/* Has all code translated again, without any callback; `then` registers new ones. */
void drop_translations(qemu_plugin_id_t id, void (*then)(void));

/* Adds to the counter in translated code: each time that the instruction begins, or makes an access of that kind. */
void add_at_insn(struct qemu_plugin_insn *insn, uint64_t *counter, uint64_t addend);
void add_at_access(struct qemu_plugin_insn *insn, enum qemu_plugin_mem_rw rw, uint64_t *counter, uint64_t addend);

/* Whether callbacks with R_REGS can read registers; and the value of one of at most 64 bits, 0 if there is none of that name. */
#define REGISTERS_ARE_READ (PLUGIN_API >= 2)
uint64_t register_value(const char *name);

/* Where the instruction's bytes are while it is translated; of more than `size` only the first may be there. They may be in `copy`. */
const uint8_t *insn_data(const struct qemu_plugin_insn *insn, uint8_t *copy, size_t size);

#endif
