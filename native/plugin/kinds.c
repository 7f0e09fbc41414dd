/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which MSR is written, which port is read: known when it happens. So it is looked up at these instructions alone. */
#include "kinds.h"

#include <inttypes.h>

#include "listener.h"
#include "memory.h"

#define MOST_KINDS 256u /* a kind is a byte of what is written */
#define NAME_BYTES 64
#define DEVICE "mmio"

static const struct arch *arch;
static char names[MOST_KINDS][NAME_BYTES]; /* by kind; first those of all instructions whatever they are for */
static unsigned n_kinds;
static void (*report_kind)(const char *name);

void kinds_init(const struct arch *of, void (*report)(const char *name))
{
    arch = of;
    report_kind = report;
    for (n_kinds = 0; arch->special_names[n_kinds]; n_kinds++)
        snprintf(names[n_kinds], NAME_BYTES, "%s", arch->special_names[n_kinds]);
}

/* The kind of that name; when there are too many, the one that is given. */
static uint8_t kind_named(const char *name, uint8_t otherwise)
{
    unsigned kind = 1;

    while (kind < n_kinds && strcmp(names[kind], name))
        kind++;
    if (kind == MOST_KINDS)
        return otherwise;
    if (kind == n_kinds) {
        snprintf(names[n_kinds++], NAME_BYTES, "%s", name);
        report_kind(name);
    }
    return (uint8_t)kind;
}

static uint8_t kind_of(uint8_t special, uint64_t detail)
{
    char name[NAME_BYTES];
    size_t length = (size_t)snprintf(name, sizeof name, "%s ", arch->special_names[special]);

    if (!detail)
        return special;
    arch->name_detail(special, detail, name + length, sizeof name - length);
    return kind_named(name, special);
}

static bool is_watched(const struct insn_facts *facts)
{
    return REGISTERS_ARE_READ && facts->reads;
}

uint8_t kinds_by_bytes(const struct insn_facts *facts)
{
    return is_watched(facts) ? 0 : kind_of(facts->special, facts->detail);
}

static struct kind_count *count_of(struct group *g, uint64_t detail)
{
    struct kind_count *c = g->kinds;

    while (c && c->detail != detail)
        c = c->next;
    if (!c) {
        c = zalloc(1, sizeof *c);
        c->detail = detail;
        c->next = g->kinds;
        g->kinds = c;
    }
    return c;
}

static void add(struct block *b, unsigned group, struct kind_count *c, int times)
{
    c->n += (uint64_t)(int64_t)times;
    REPORT(kind, b, group, c->kind, times);
}

static void executes(unsigned int vcpu, void *data)
{
    struct group *g = data;
    uint64_t detail = arch->detail(&g->last, register_value);
    struct kind_count *c = count_of(g, detail);

    (void)vcpu;
    if (!c->kind)
        c->kind = kind_of(g->last.special, detail);
    g->kind = c;
    add(g->site.block, g->site.group, c, 1);
}

void kinds_watch(struct qemu_plugin_insn *insn, struct group *g)
{
    if (is_watched(&g->last))
        qemu_plugin_register_vcpu_insn_exec_cb(insn, executes, QEMU_PLUGIN_CB_R_REGS, g);
}

/* NULL: it has no name. QEMU then makes one of an address of its own. */
static const char *device_name(const struct qemu_plugin_hwaddr *address)
{
    const char *name = arch->device_at ? arch->device_at(qemu_plugin_hwaddr_phys_addr(address)) : NULL;

    if (!name)
        name = qemu_plugin_hwaddr_device_name(address);
    return name && *name && strncmp(name, "anon", 4) ? name : NULL;
}

bool kinds_device(struct block *b, const struct qemu_plugin_hwaddr *address, bool is_store)
{
    const char *device = device_name(address), *way = is_store ? "write" : "read";
    uint64_t page = qemu_plugin_hwaddr_phys_addr(address) >> 12 << 12;
    struct kind_count *c = count_of(b->origin->groups, (device ? (uintptr_t)device : page) << 1 | is_store);
    char name[NAME_BYTES];

    if (!c->kind) {
        if (device)
            snprintf(name, sizeof name, DEVICE " %s %s", device, way);
        else
            snprintf(name, sizeof name, DEVICE " 0x%" PRIx64 " %s", page, way);
        c->kind = kind_named(name, 0);
    }
    if (c->kind)
        add(b, 0, c, 1);
    return c->kind;
}

void kinds_take_back(struct block *b, unsigned group, int times)
{
    struct group *g = &b->origin->groups[group];

    if (g->kind)
        add(b, group, g->kind, -times);
}

void kinds_flush(struct group *g, enum context context, bool sum)
{
    for (struct kind_count *c = g->kinds; c; c = c->next) {
        if (sum)
            c->sum[context] += c->n - c->flushed;
        c->flushed = c->n;
    }
}

void kinds_forget(struct group *g)
{
    for (struct kind_count *c = g->kinds; c; c = c->next)
        memset(c->sum, 0, sizeof c->sum);
}
