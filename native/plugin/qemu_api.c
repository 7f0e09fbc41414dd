/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What differs between the versions of QEMU's plugin interface. */
#include "qemu_api.h"

#include "cpus.h"
#include "memory.h"

__attribute__((visibility("default"))) int qemu_plugin_version = PLUGIN_API;

static void (*begin)(void);
static void (*translate)(struct qemu_plugin_tb *tb);
static void (*end)(void);
static void (*after_drop)(void);

#if PLUGIN_API < 7

void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id, void (*cb)(qemu_plugin_id_t id, unsigned int vcpu));
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, void (*cb)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb));
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, void (*cb)(qemu_plugin_id_t id, void *data), void *data);
void qemu_plugin_reset(qemu_plugin_id_t id, void (*cb)(qemu_plugin_id_t id));

static void begins(qemu_plugin_id_t id, unsigned int vcpu)
{
    (void)id, (void)vcpu;
    begin();
}

static void translates(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    translate(tb);
}

static void ends(qemu_plugin_id_t id, void *data)
{
    (void)id, (void)data;
    end();
}

static void dropped(qemu_plugin_id_t id)
{
    (void)id;
    after_drop();
}

#define REGISTER_WITHOUT_DATA(function, id, callback) function(id, callback)

#else

void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id, void (*cb)(unsigned int vcpu, void *data), void *data);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, void (*cb)(struct qemu_plugin_tb *tb, void *data), void *data);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, void (*cb)(void *data), void *data);
void qemu_plugin_reset(qemu_plugin_id_t id, void (*cb)(void *data), void *data);

static void begins(unsigned int vcpu, void *data)
{
    (void)vcpu, (void)data;
    begin();
}

static void translates(struct qemu_plugin_tb *tb, void *data)
{
    (void)data;
    translate(tb);
}

static void ends(void *data)
{
    (void)data;
    end();
}

static void dropped(void *data)
{
    (void)data;
    after_drop();
}

#define REGISTER_WITHOUT_DATA(function, id, callback) function(id, callback, NULL)

#endif

void at_new_cpu(qemu_plugin_id_t id, void (*call)(void))
{
    begin = call;
    REGISTER_WITHOUT_DATA(qemu_plugin_register_vcpu_init_cb, id, begins);
}

void at_translation(qemu_plugin_id_t id, void (*call)(struct qemu_plugin_tb *tb))
{
    translate = call;
    REGISTER_WITHOUT_DATA(qemu_plugin_register_vcpu_tb_trans_cb, id, translates);
}

void at_end(qemu_plugin_id_t id, void (*call)(void))
{
    end = call;
    qemu_plugin_register_atexit_cb(id, ends, NULL);
}

void drop_translations(qemu_plugin_id_t id, void (*then)(void))
{
    after_drop = then;
    REGISTER_WITHOUT_DATA(qemu_plugin_reset, id, dropped);
}

enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 = 0 };

#if PLUGIN_API < 2

void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn, enum qemu_plugin_op op, void *counter, uint64_t addend);
void qemu_plugin_register_vcpu_mem_inline(struct qemu_plugin_insn *insn, enum qemu_plugin_mem_rw rw, enum qemu_plugin_op op,
                                          void *counter, uint64_t addend);

void add_at_insn(struct qemu_plugin_insn *insn, uint64_t *counter, uint64_t addend)
{
    qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64, counter, addend);
}

void add_at_access(struct qemu_plugin_insn *insn, enum qemu_plugin_mem_rw rw, uint64_t *counter, uint64_t addend)
{
    qemu_plugin_register_vcpu_mem_inline(insn, rw, QEMU_PLUGIN_INLINE_ADD_U64, counter, addend);
}

#else

struct qemu_plugin_scoreboard;
typedef struct {
    struct qemu_plugin_scoreboard *score;
    size_t offset;
} qemu_plugin_u64;

struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t element_bytes);
void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *score, unsigned int vcpu);
void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(struct qemu_plugin_insn *insn, enum qemu_plugin_op op, qemu_plugin_u64 entry,
                                                         uint64_t addend);
void qemu_plugin_register_vcpu_mem_inline_per_vcpu(struct qemu_plugin_insn *insn, enum qemu_plugin_mem_rw rw, enum qemu_plugin_op op,
                                                   qemu_plugin_u64 entry, uint64_t addend);

/* The counter as the first CPU's entry of a scoreboard.
 *
 * QEMU adds an entry's offset to where its CPU's element begins, and tests neither: so one small scoreboard reaches every counter.
 * It does not move, for QEMU moves scoreboards when there are more than 16 CPUs, and only the first one counts. Counters in
 * scoreboards' own memory would take that of 16 CPUs, and not be in one cache line with what the callback of their block needs.
 */
static qemu_plugin_u64 entry_of(const uint64_t *counter)
{
    static struct qemu_plugin_scoreboard *score;
    static uintptr_t base;

    if (!score) { /* QEMU can say where it is once there is a CPU, so when code is translated */
        score = qemu_plugin_scoreboard_new(sizeof *counter);
        base = (uintptr_t)qemu_plugin_scoreboard_find(score, 0);
    }
    return (qemu_plugin_u64){ score, (uintptr_t)counter - base };
}

/* With several CPUs, QEMU multiplies the number of the CPU that translates in place, and so spoils what else in the block is equal to
 * that number: additions are made by callbacks then.
 */
struct addition {
    uint64_t *counter, addend;
};

static struct addition *addition_of(uint64_t *counter, uint64_t addend)
{
    struct addition *a = zalloc(1, sizeof *a);

    *a = (struct addition){ counter, addend };
    return a;
}

static void adds(unsigned int vcpu, void *addition)
{
    const struct addition *a = addition;

    (void)vcpu;
    *a->counter += a->addend;
}

static void adds_at_access(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *addition)
{
    (void)info, (void)vaddr;
    adds(vcpu, addition);
}

void add_at_insn(struct qemu_plugin_insn *insn, uint64_t *counter, uint64_t addend)
{
    if (n_cpus > 1) {
        qemu_plugin_register_vcpu_insn_exec_cb(insn, adds, QEMU_PLUGIN_CB_NO_REGS, addition_of(counter, addend));
        return;
    }
    qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, QEMU_PLUGIN_INLINE_ADD_U64, entry_of(counter), addend);
}

void add_at_access(struct qemu_plugin_insn *insn, enum qemu_plugin_mem_rw rw, uint64_t *counter, uint64_t addend)
{
    if (n_cpus > 1) {
        qemu_plugin_register_vcpu_mem_cb(insn, adds_at_access, QEMU_PLUGIN_CB_NO_REGS, rw, addition_of(counter, addend));
        return;
    }
    qemu_plugin_register_vcpu_mem_inline_per_vcpu(insn, rw, QEMU_PLUGIN_INLINE_ADD_U64, entry_of(counter), addend);
}

#endif

#if PLUGIN_API < 3

const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);

const uint8_t *insn_data(const struct qemu_plugin_insn *insn, uint8_t *copy, size_t size)
{
    (void)copy, (void)size;
    return qemu_plugin_insn_data(insn);
}

#else

size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *copy, size_t size);

const uint8_t *insn_data(const struct qemu_plugin_insn *insn, uint8_t *copy, size_t size)
{
    qemu_plugin_insn_data(insn, copy, size);
    return copy;
}

#endif

#if REGISTERS_ARE_READ

struct qemu_plugin_register;
typedef struct {
    struct qemu_plugin_register *handle;
    const char *name, *feature;
} qemu_plugin_reg_descriptor;

glib_array *qemu_plugin_get_registers(void); /* of the CPU that executes */
int qemu_plugin_read_register(struct qemu_plugin_register *handle, glib_byte_array *value);

/* Handles are the same for all CPUs, which are alike. */
static struct qemu_plugin_register *handle_of(const char *name)
{
    glib_array *all = qemu_plugin_get_registers();
    struct qemu_plugin_register *found = NULL;

    for (unsigned i = 0; i < all->len; i++) {
        const qemu_plugin_reg_descriptor *one = (const qemu_plugin_reg_descriptor *)(const void *)all->data + i;

        if (!strcmp(one->name, name))
            found = one->handle;
    }
    g_array_free(all, 1);
    return found;
}

/* Names are constants, so each has one address. */
static struct qemu_plugin_register *handle_known(const char *name)
{
    static struct { const char *name; struct qemu_plugin_register *handle; } known[32];
    size_t i = 0;

    while (i < 31 && known[i].name && known[i].name != name)
        i++;
    if (known[i].name != name) {
        known[i].name = name;
        known[i].handle = handle_of(name);
    }
    return known[i].handle;
}

uint64_t register_value(const char *name)
{
    static glib_byte_array *bytes;
    struct qemu_plugin_register *handle = handle_known(name);
    uint64_t value = 0;

    if (!handle)
        return 0;
    if (!bytes)
        bytes = g_byte_array_new();
    g_byte_array_set_size(bytes, 0);
    qemu_plugin_read_register(handle, bytes);
    memcpy(&value, bytes->data, bytes->len < sizeof value ? bytes->len : sizeof value);
    return value;
}

#else

uint64_t register_value(const char *name)
{
    (void)name;
    return 0;
}

#endif
