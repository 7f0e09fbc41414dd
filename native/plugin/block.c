/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocks by address and bytes, cut into groups. */
#include "block.h"

#include "insn.h"
#include "memory.h"
#include "qemu_api.h"

#define CHAINS (1u << 16)

static struct block *chains[CHAINS];
static uint32_t blocks;

static uint32_t hash_of(uint64_t vaddr, uint64_t n)
{
    uint64_t h = (vaddr ^ n * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;

    return (uint32_t)(h >> 40) & (CHAINS - 1);
}

/* A translation's instructions. */
struct code {
    const struct insn *insns;
    size_t n;
    bool in_kernel, doubtful;
};

/* The groups of a translation; groups is NULL when they are only counted. */
static uint16_t cut(const struct code *code, struct group *groups)
{
    size_t n = code->n;
    uint16_t group = 0, length = 0;

    for (size_t i = 0; i < n; i++) {
        const struct insn *insn = &code->insns[i];
        struct insn_facts facts = insn->facts;

        if (facts.always_there && code->in_kernel)
            facts.can_fault = false;
        bool stands_alone = facts.mark || (code->doubtful && i == n - 1);

        if (stands_alone && length)
            group++, length = 0;
        length++;
        if (groups) {
            struct group *g = &groups[group];

            if (length > 1) {
                g->inner_loads += g->last.loads;
                g->inner_stores += g->last.stores;
            }
            g->insns = length;
            g->last = facts;
            g->last_vaddr = insn->vaddr;
            g->end_vaddr = insn->vaddr + insn->size;
        }
        if ((facts.can_fault || facts.mark) && i < n - 1)
            group++, length = 0;
    }
    return group + 1;
}

static bool last_is_doubtful(const struct insn *insns, size_t n, const struct arch *arch)
{
    if (!arch->drops_page_crossing || n < 2)
        return false;
    return insns[n - 1].vaddr % arch->page_bytes + arch->max_insn_bytes > arch->page_bytes;
}

static struct block *allocate(uint16_t n_groups)
{
    size_t line = 64, size = sizeof(struct block) + n_groups * sizeof(uint64_t);
    struct block *b = must(aligned_alloc(line, (size + line - 1) / line * line));

    memset(b, 0, size);
    b->origin = zalloc(1, sizeof *b->origin);
    b->origin->n_groups = n_groups;
    b->origin->groups = zalloc(n_groups, sizeof *b->origin->groups);
    b->tail = n_groups - 1;
    return b;
}

struct block *block_dummy(void)
{
    return allocate(1);
}

uint64_t insns_from(const struct block *b, unsigned group)
{
    uint64_t n = 0;

    for (; group < b->origin->n_groups; group++)
        n += b->origin->groups[group].insns;
    return n;
}

static struct shape *shapes_of(const struct code *code)
{
    struct shape *shapes = zalloc(code->n, sizeof *shapes);

    for (size_t i = 0; i < code->n; i++) {
        const struct insn *insn = &code->insns[i];

        shapes[i] = (struct shape){ (uint8_t)insn->size, insn->facts.loads, insn->facts.stores };
    }
    return shapes;
}

static struct block *make(const struct qemu_plugin_tb *tb, const struct code *code, const struct bytes *bytes)
{
    struct block *b = allocate(cut(code, NULL));
    struct origin *o = b->origin;

    cut(code, o->groups);
    b->id = blocks++;
    o->vaddr = qemu_plugin_tb_vaddr(tb);
    o->host = (uint64_t)(uintptr_t)qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(tb, 0));
    o->doubtful = code->doubtful;
    o->bytes = must(malloc(bytes->size));
    memcpy(o->bytes, bytes->data, bytes->size);
    o->n_bytes = (uint32_t)bytes->size;
    b->user = !code->in_kernel;
    b->insns = (uint16_t)code->n;
    o->shapes = shapes_of(code);
    const struct insn_facts *last = &o->groups[o->n_groups - 1].last;

    for (uint16_t g = 0; g < o->n_groups; g++)
        o->groups[g].site = (struct site){ b, g, o->groups[g].last.mark };
    b->head = !o->groups[0].last.mark && !is_silent(b);
    if (last->frame_return)
        b->flags |= ENDS_FRAME;
    return b;
}

struct block *block_of(const struct qemu_plugin_tb *tb, const struct arch *arch, const struct insn *insns)
{
    static struct bytes bytes;
    uint64_t vaddr = qemu_plugin_tb_vaddr(tb);
    size_t n = qemu_plugin_tb_n_insns(tb);

    bytes.size = 0;
    for (size_t i = 0; i < n; i++)
        bytes_add(&bytes, insns[i].bytes, insns[i].size);
    struct block **chain = &chains[hash_of(vaddr, n)];

    for (struct block *b = *chain; b; b = b->origin->next)
        if (b->origin->vaddr == vaddr && b->origin->n_bytes == bytes.size &&
            !memcmp(b->origin->bytes, bytes.data, bytes.size))
            return b;
    const struct code code = {
        .insns = insns,
        .n = n,
        .in_kernel = arch_is_kernel(arch, vaddr),
        .doubtful = last_is_doubtful(insns, n, arch),
    };
    struct block *b = make(tb, &code, &bytes);

    b->origin->next = *chain;
    return *chain = b;
}

/* An open-addressed set of (address, size); an empty slot has size 0. */
static struct seen { uint64_t vaddr; uint32_t size; } *seen;
static size_t seen_capacity, seen_used;

static struct seen *seen_slot(struct seen *table, size_t capacity, uint64_t vaddr, uint32_t size)
{
    size_t i = (vaddr ^ size) * 0x9e3779b97f4a7c15u >> 20 & (capacity - 1);

    while (table[i].size && (table[i].vaddr != vaddr || table[i].size != size))
        i = (i + 1) & (capacity - 1);
    return &table[i];
}

void seen_add(uint64_t vaddr, uint32_t size)
{
    if (2 * seen_used >= seen_capacity) {
        size_t capacity = seen_capacity ? 2 * seen_capacity : 1 << 16;
        struct seen *table = zalloc(capacity, sizeof *table);

        for (size_t i = 0; i < seen_capacity; i++)
            if (seen[i].size)
                *seen_slot(table, capacity, seen[i].vaddr, seen[i].size) = seen[i];
        free(seen);
        seen = table;
        seen_capacity = capacity;
    }
    struct seen *slot = seen_slot(seen, seen_capacity, vaddr, size);

    seen_used += !slot->size;
    *slot = (struct seen){ vaddr, size };
}

size_t seen_count(void)
{
    return seen_used;
}

void seen_each(void (*visit)(uint64_t vaddr, uint32_t size, void *data), void *data)
{
    for (size_t i = 0; i < seen_capacity; i++)
        if (seen[i].size)
            visit(seen[i].vaddr, seen[i].size, data);
}
