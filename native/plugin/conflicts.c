/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Accesses of a region, by line, instruction, CPU and context.
 *
 * Whether two CPUs contend for a line does not depend on how their work was interleaved, but on what each of them accesses: so all
 * accesses are kept, and at the region's end those to lines that one CPU wrote and another one accessed are written.
 */
#include "conflicts.h"

#include "count.h"
#include "heap.h"
#include "listener.h"
#include "output.h"

#define LINE_BYTES 64u
#define MOST_ACCESSES (UINT32_C(4) << 20)
#define LEAST_SLOTS (1u << 12)
#define MOST_LOOKS 1000u /* at the entry from user code, the kernel may not be mapped yet */
#define KERNEL_HALF(vaddr) ((vaddr) >> 63)

struct line {
    uint64_t physical, vaddr; /* as it was first accessed */
    uint64_t accessed, wrote; /* bits of CPUs */
    struct heap_place heap;
};

/* One instruction's accesses to one line, on one CPU. */
struct access {
    uint64_t insn, reads, writes;
    uint64_t bytes_read, bytes_written; /* bits of the line's bytes */
    uint32_t line;
    uint8_t cpu, context, special;
};

/* An instruction, and its last access, which the next one is likely to be like. */
struct place {
    uint64_t vaddr, line_vaddr, serial;
    uint32_t access;
    uint8_t special, cpu, context;
};

/* Open-addressed: number + 1. */
struct index {
    uint32_t *slots, n_slots;
};

bool conflicts_wanted;

static struct line *lines;
static struct access *accesses;
static uint32_t n_lines, lines_capacity, n_accesses, accesses_capacity;
static struct index line_index, access_index;
static bool truncated;
static unsigned looks; /* that are left, until one saw the heap of this region */

static uint64_t line_hash(uint32_t number)
{
    return mixed(lines[number].physical);
}

static uint64_t access_hash(uint32_t number)
{
    const struct access *a = &accesses[number];

    return mixed(mixed(a->insn) ^ a->line ^ (uint64_t)a->cpu << 32 ^ (uint64_t)a->context << 40);
}

static void empty(struct index *index, uint32_t n_slots)
{
    free(index->slots);
    index->n_slots = n_slots;
    index->slots = zalloc(n_slots, sizeof *index->slots);
}

static uint32_t *slot_of(struct index *index, uint64_t hash)
{
    return &index->slots[hash & (index->n_slots - 1)];
}

static uint32_t *next_slot(struct index *index, uint32_t *slot)
{
    return ++slot == index->slots + index->n_slots ? index->slots : slot;
}

/* One entry more is in the index, which is kept half empty. */
static void grow(struct index *index, uint32_t n, uint64_t (*hash)(uint32_t number))
{
    if (2 * n <= index->n_slots)
        return;
    empty(index, 2 * index->n_slots);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t *slot = slot_of(index, hash(i));

        while (*slot)
            slot = next_slot(index, slot);
        *slot = i + 1;
    }
}

static uint32_t line_of(uint64_t physical, uint64_t vaddr)
{
    uint32_t *slot = slot_of(&line_index, mixed(physical));

    for (; *slot; slot = next_slot(&line_index, slot))
        if (lines[*slot - 1].physical == physical)
            return *slot - 1;
    if (n_lines == lines_capacity) {
        lines_capacity = lines_capacity ? 2 * lines_capacity : 4096;
        lines = must(realloc(lines, lines_capacity * sizeof *lines));
    }
    lines[n_lines] = (struct line){ .physical = physical, .vaddr = vaddr };
    *slot = ++n_lines;
    grow(&line_index, n_lines, line_hash);
    return n_lines - 1;
}

static uint32_t access_of(const struct access *wanted)
{
    uint64_t hash;
    uint32_t *slot;

    if (n_accesses == accesses_capacity) {
        accesses_capacity = accesses_capacity ? 2 * accesses_capacity : 4096;
        accesses = must(realloc(accesses, accesses_capacity * sizeof *accesses));
    }
    accesses[n_accesses] = *wanted;
    hash = access_hash(n_accesses);
    for (slot = slot_of(&access_index, hash); *slot; slot = next_slot(&access_index, slot)) {
        const struct access *a = &accesses[*slot - 1];

        if (a->insn == wanted->insn && a->line == wanted->line && a->cpu == wanted->cpu && a->context == wanted->context)
            return *slot - 1;
    }
    *slot = ++n_accesses;
    grow(&access_index, n_accesses, access_hash);
    return n_accesses - 1;
}

static bool is_contended(const struct line *line)
{
    return line->wrote && line->accessed & (line->accessed - 1);
}

/* What is an object, is one still when another CPU comes to it. */
static void note_in_line(struct line *line, unsigned cpu, bool store)
{
    bool was = is_contended(line);

    line->accessed |= UINT64_C(1) << cpu;
    if (store)
        line->wrote |= UINT64_C(1) << cpu;
    if (was || !is_contended(line) || !KERNEL_HALF(line->vaddr))
        return;
    if (looks)
        looks = heap_look() ? 0 : looks - 1;
    line->heap = heap_place_of(line->vaddr);
}

static void note(struct access *a, uint64_t vaddr, unsigned size, bool store)
{
    unsigned first = vaddr % LINE_BYTES, n = size < LINE_BYTES - first ? size : LINE_BYTES - first;
    uint64_t bytes = (n == 64 ? 0 : UINT64_C(1) << n) - 1;

    if (store) {
        a->writes++;
        a->bytes_written |= bytes << first;
    } else {
        a->reads++;
        a->bytes_read |= bytes << first;
    }
    note_in_line(&lines[a->line], a->cpu, store);
}

static bool is_like_last(const struct place *p, uint64_t line_vaddr, unsigned cpu, unsigned context)
{
    return p->line_vaddr == line_vaddr && p->serial == now.region.serial && p->cpu == cpu && p->context == context &&
        KERNEL_HALF(line_vaddr);
}

/* The part of an access that is in one line. */
static void access_line(struct place *p, qemu_plugin_meminfo_t info, uint64_t vaddr, unsigned size, uint64_t physical)
{
    unsigned cpu = now.cpu;
    enum context context = task_context();

    if (context == OTHER)
        return;
    if (!is_like_last(p, vaddr / LINE_BYTES, cpu, context)) {
        uint32_t line = line_of(physical / LINE_BYTES, vaddr / LINE_BYTES * LINE_BYTES);

        if (n_accesses == MOST_ACCESSES) {
            truncated = true;
            return;
        }
        p->access = access_of(&(struct access){ .insn = p->vaddr, .line = line, .cpu = (uint8_t)cpu, .context = (uint8_t)context,
                                                .special = p->special });
        p->line_vaddr = vaddr / LINE_BYTES;
        p->serial = now.region.serial;
        p->cpu = (uint8_t)cpu;
        p->context = (uint8_t)context;
    }
    note(&accesses[p->access], vaddr, size, qemu_plugin_mem_is_store(info));
}

void conflicts_access(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *place)
{
    unsigned size = 1u << qemu_plugin_mem_size_shift(info), first = LINE_BYTES - vaddr % LINE_BYTES;
    struct qemu_plugin_hwaddr *address;

    (void)vcpu;
    if (!now.region.serial)
        return;
    address = qemu_plugin_get_hwaddr(info, vaddr);
    if (!address || qemu_plugin_hwaddr_is_io(address))
        return;
    uint64_t physical = qemu_plugin_hwaddr_phys_addr(address);

    access_line(place, info, vaddr, size < first ? size : first, physical);
    /* What lies in another page has a place of its own, which is not known here. */
    if (size > first && (vaddr + first) % 4096)
        access_line(place, info, vaddr + first, size - first, physical + first);
}

void *conflicts_place(const struct insn *insn)
{
    struct place *p = zalloc(1, sizeof *p);

    p->vaddr = insn->vaddr;
    p->special = insn->facts.special;
    return p;
}

static void forget(void)
{
    n_lines = n_accesses = 0;
    truncated = false;
    empty(&line_index, LEAST_SLOTS);
    empty(&access_index, LEAST_SLOTS);
}

static void begin(const struct site *site)
{
    (void)site;
    looks = MOST_LOOKS;
}

static void caches_of(struct bytes *out)
{
    const struct heap_cache *caches;
    size_t n = heap_caches(&caches);

    bytes_u32(out, (uint32_t)n);
    for (size_t i = 0; i < n; i++) {
        bytes_add(out, caches[i].name, sizeof caches[i].name);
        bytes_u32(out, caches[i].object_bytes);
        bytes_u32(out, caches[i].users);
    }
}

static void lines_of(struct bytes *out)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < n_lines; i++)
        n += is_contended(&lines[i]);
    bytes_u32(out, n);
    for (uint32_t i = 0; i < n_lines; i++) {
        const struct line *l = &lines[i];

        if (!is_contended(l))
            continue;
        bytes_u32(out, i);
        bytes_u32(out, l->heap.cache);
        bytes_u64(out, l->vaddr);
        bytes_u64(out, l->heap.start);
    }
}

static void accesses_of(struct bytes *out)
{
    for (uint32_t i = 0; i < n_accesses; i++) {
        const struct access *a = &accesses[i];

        if (!is_contended(&lines[a->line]))
            continue;
        bytes_u32(out, a->line);
        bytes_add(out, (uint8_t[4]){ a->cpu, a->context, a->special, 0 }, 4);
        bytes_u64(out, a->insn);
        bytes_u64(out, a->reads);
        bytes_u64(out, a->writes);
        bytes_u64(out, a->bytes_read);
        bytes_u64(out, a->bytes_written);
    }
}

/* Once, before the first region that may have lines: the heap is looked at when there is one. */
static void output_types(void)
{
    static bool done;
    const uint8_t *types;
    size_t size = done ? 0 : heap_types(&types);

    if (size)
        output_parts("BTF ", &(struct part){ types, size }, 1);
    done |= size;
}

static void output(const struct region *region)
{
    struct bytes out = { 0 };

    output_types();
    bytes_u32(&out, region->began_on);
    bytes_u32(&out, truncated);
    bytes_u64(&out, heap_bases()->direct_map);
    bytes_u64(&out, heap_bases()->pages);
    caches_of(&out);
    bytes_u32(&out, n_cpus);
    bytes_add(&out, heap_bases()->per_cpu, n_cpus * sizeof *heap_bases()->per_cpu);
    lines_of(&out);
    accesses_of(&out);
    output_parts("CNFL", &(struct part){ out.data, out.size }, 1);
    free(out.data);
}

static const struct listener conflicts = { .begin = begin, .output = output, .forget = forget };

void conflicts_want(void)
{
    conflicts_wanted = true;
    forget();
    listener_add(&conflicts);
    heap_want();
}
