/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whose misses: they wait at their blocks until the segment closes and its context is known. */
#include "icache.h"

#include "output.h"

#define MOST_SETS (1u << 16)
#define MOST_WAYS 64u
#define LEAST_LINE 4u
#define MOST_LINE 4096u

struct icache icache;

struct sum {
    uint64_t misses[CONTEXTS];
    const struct block *block;
};

static struct {
    const struct block **open; /* have missed in the segment that is open */
    size_t n_open, open_capacity;
    struct sum *sums;          /* by block, of the region that is active */
    size_t n_sums, sums_capacity;
    uint32_t *sum_of;          /* by id: index into sums */
    size_t ids;                /* that the tables have room for */
    uint64_t misses[CONTEXTS], fetched[CONTEXTS];
} found;

static bool is_power_of_two(unsigned long n)
{
    return n && !(n & (n - 1));
}

bool icache_want(const char *geometry)
{
    unsigned sets, ways, line;
    int end = 0;

    if (sscanf(geometry, "%ux%ux%u%n", &sets, &ways, &line, &end) != 3 || geometry[end] ||
        !is_power_of_two(sets) || sets > MOST_SETS || !ways || ways > MOST_WAYS ||
        !is_power_of_two(line) || line < LEAST_LINE || line > MOST_LINE) {
        fprintf(stderr, "kdelta plugin: no cache has the geometry %s\n", geometry);
        return false;
    }
    icache.sets = sets;
    icache.ways = ways;
    icache.line_bytes = line;
    icache.tags = zalloc((size_t)sets * ways, sizeof *icache.tags);
    return true;
}

static void make_room(uint32_t id)
{
    size_t ids = found.ids ? found.ids : 4096;

    if (id < found.ids)
        return;
    while (ids <= id)
        ids *= 2;
    icache.fetches = must(realloc(icache.fetches, ids * sizeof *icache.fetches));
    memset(icache.fetches + found.ids, 0, (ids - found.ids) * sizeof *icache.fetches);
    found.sum_of = must(realloc(found.sum_of, ids * sizeof *found.sum_of));
    found.ids = ids;
}

void icache_place(const struct block *b)
{
    const struct origin *o = b->origin;
    uint64_t last_byte = o->groups[o->n_groups - 1].end_vaddr - 1;

    if (!icache.tags)
        return;
    make_room(b->id);
    struct fetch *f = &icache.fetches[b->id];

    f->line = o->vaddr / icache.line_bytes;
    f->lines = (uint32_t)(last_byte / icache.line_bytes - f->line) + 1;
}

void icache_missed(const struct block *b, uint64_t misses)
{
    struct fetch *f = &icache.fetches[b->id];

    if (!f->misses) {
        if (found.n_open == found.open_capacity) {
            found.open_capacity = found.open_capacity ? 2 * found.open_capacity : 4096;
            found.open = must(realloc(found.open, found.open_capacity * sizeof *found.open));
        }
        found.open[found.n_open++] = b;
    }
    f->misses += (uint32_t)misses;
}

void icache_begin(const struct block *b)
{
    if (!icache.tags)
        return;
    memset(found.misses, 0, sizeof found.misses);
    memset(found.fetched, 0, sizeof found.fetched);
    found.n_sums = 0;
    icache.fetched = icache.fetches[b->id].lines;
    if (icache.last_misses)
        icache_missed(b, icache.last_misses);
}

static struct sum *sum_of(const struct block *b)
{
    uint32_t *index = &found.sum_of[b->id];

    if (*index < found.n_sums && found.sums[*index].block == b)
        return &found.sums[*index];
    if (found.n_sums == found.sums_capacity) {
        found.sums_capacity = found.sums_capacity ? 2 * found.sums_capacity : 4096;
        found.sums = must(realloc(found.sums, found.sums_capacity * sizeof *found.sums));
    }
    *index = (uint32_t)found.n_sums++;
    found.sums[*index] = (struct sum){ .block = b };
    return &found.sums[*index];
}

void icache_cut(enum context context)
{
    bool wanted = now.region.serial;

    for (size_t i = 0; i < found.n_open; i++) {
        struct fetch *f = &icache.fetches[found.open[i]->id];

        if (wanted) {
            sum_of(found.open[i])->misses[context] += f->misses;
            found.misses[context] += f->misses;
        }
        f->misses = 0;
    }
    if (wanted)
        found.fetched[context] += icache.fetched;
    icache.fetched = 0;
    found.n_open = 0;
}

static void add_rows(struct bytes *rows)
{
    for (size_t i = 0; i < found.n_sums; i++) {
        const struct sum *s = &found.sums[i];

        bytes_u64(rows, s->block->origin->vaddr);
        bytes_add(rows, s->misses, sizeof s->misses);
    }
}

void icache_output(const struct region *region)
{
    struct bytes head = { 0 }, rows = { 0 };
    uint32_t length = (uint32_t)strlen(region->name);

    if (!icache.tags)
        return;
    bytes_u32(&head, icache.sets);
    bytes_u32(&head, icache.ways);
    bytes_u32(&head, icache.line_bytes);
    bytes_u32(&head, length);
    bytes_add(&head, found.fetched, sizeof found.fetched);
    bytes_add(&head, found.misses, sizeof found.misses);
    bytes_add(&head, region->name, length);
    add_rows(&rows);
    if (output_has_room(rows.size)) {
        const struct part parts[] = { { head.data, head.size }, { rows.data, rows.size } };

        output_parts("MISS", parts, sizeof parts / sizeof *parts);
    }
    free(head.data);
    free(rows.data);
}
