/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Data through its first-level cache. Layouts do not move data, so this is done once, and what hits there is seen by nothing else. */
#include "replay.h"

#include "places.h"
#include "replacement.h"

struct filter {
    const struct replay_trace *trace;
    const struct replay_cache *cache;
    struct replay_filtered *out;
    struct table table;    /* of the pieces that are left */
    struct numbers lines;
    uint32_t *tags;        /* of all sets */
    uint32_t times;        /* that something left the cache */
    uint32_t *set, *tag;   /* of each line of data */
    uint64_t items_capacity, starts_capacity;
};

static bool same_piece(const void *owner, uint32_t id, const void *key)
{
    const struct replay_filtered *f = owner;
    uint64_t n = f->starts[id + 1] - f->starts[id];

    return n == f->n_items - f->starts[f->n_pieces] &&
        !memcmp(key, f->items + f->starts[id], n * sizeof *f->items);
}

/* The array with room for `wanted`, moved if need be; NULL if memory is short, and then it is as it was. */
static void *grown(void *array, uint64_t *capacity, uint64_t wanted, size_t size)
{
    if (wanted <= *capacity)
        return array;
    uint64_t larger = 2 * *capacity > wanted ? 2 * *capacity : wanted;
    void *moved = realloc(array, larger * size);

    if (moved)
        *capacity = larger;
    return moved;
}

static bool grow_items(struct filter *f, uint64_t wanted)
{
    uint32_t *items = grown(f->out->items, &f->items_capacity, wanted, sizeof *items);

    if (items)
        f->out->items = items;
    return items;
}

static bool grow_starts(struct filter *f, uint64_t wanted)
{
    uint64_t *starts = grown(f->out->starts, &f->starts_capacity, wanted, sizeof *starts);

    if (starts)
        f->out->starts = starts;
    return starts;
}

/* What stands at the end of the items becomes a piece, or goes again if it is one already. Its number, or NONE if memory is short. */
static uint32_t piece_number(struct filter *f, uint64_t hash)
{
    struct replay_filtered *out = f->out;
    const uint32_t *items = out->items + out->starts[out->n_pieces];
    uint32_t id = table_get(&f->table, hash, same_piece, out, items);

    if (id != NONE) {
        out->n_items = out->starts[out->n_pieces];
        return id;
    }
    if (!grow_starts(f, out->n_pieces + 2))
        return NONE;
    id = (uint32_t)out->n_pieces;
    out->starts[++out->n_pieces] = out->n_items;
    return table_put(&f->table, hash, id) ? id : NONE;
}

static bool missed(struct filter *f, uint32_t line)
{
    const struct replay_cache *cache = f->cache;
    uint32_t tag = f->tag[line];

    return cache_touch(cache, f->tags + (size_t)f->set[line] * cache->ways, tag, &f->times) != tag;
}

/* Leaves the piece's code and its misses at the end of the items. Returns their hash. */
static uint64_t filter_piece(struct filter *f, uint32_t piece, uint64_t *misses)
{
    const struct replay_trace *t = f->trace;
    struct replay_filtered *out = f->out;
    uint64_t hash = 0;

    for (uint64_t i = t->starts[piece]; i < t->starts[piece + 1]; i++) {
        uint32_t item = t->items[i];

        if (item & DATA_ITEM) {
            if (!missed(f, item & ~DATA_ITEM))
                continue;
            ++*misses;
        }
        out->items[out->n_items++] = item;
        hash = (hash ^ item) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    return mix(hash);
}

static bool pass(struct filter *f, bool measured)
{
    const struct replay_trace *t = f->trace;
    struct replay_filtered *out = f->out;
    uint64_t unmeasured = 0;

    for (uint64_t i = 0; i < t->n_executed; i++) {
        uint32_t piece = t->sequence[i];
        uint64_t most = out->n_items + t->starts[piece + 1] - t->starts[piece];

        if (!grow_items(f, most + 1))
            return false;
        uint64_t hash = filter_piece(f, piece, measured ? &out->misses[t->contexts[i]] : &unmeasured);

        if (!measured)
            out->n_items = 0;
        else if ((out->sequence[i] = piece_number(f, hash)) == NONE)
            return false;
    }
    return true;
}

static bool number_lines(struct filter *f)
{
    const struct replay_trace *t = f->trace;

    for (uint64_t i = 0; i < t->n_data; i++) {
        f->set[i] = (uint32_t)(t->data_virtual[i] >> f->cache->line_shift) & (f->cache->sets - 1);
        f->tag[i] = number_of(&f->lines, t->data_physical[i] >> f->cache->line_shift);
        if (!f->tag[i])
            return false;
    }
    return true;
}

static bool filter(struct filter *f, bool warm)
{
    struct replay_filtered *out = f->out;

    f->tags = calloc((size_t)f->cache->sets * f->cache->ways, sizeof *f->tags);
    f->set = malloc((f->trace->n_data + 1) * sizeof *f->set);
    f->tag = malloc((f->trace->n_data + 1) * sizeof *f->tag);
    out->sequence = malloc((f->trace->n_executed + 1) * sizeof *out->sequence);
    if (!f->tags || !f->set || !f->tag || !out->sequence || !number_lines(f) ||
        !grow_items(f, 1024) || !grow_starts(f, 1024))
        return false;
    out->starts[0] = 0;
    return (!warm || pass(f, false)) && pass(f, true);
}

int replay_filter(const struct replay_trace *trace, const struct replay_cache *l1d, uint32_t flags,
                  struct replay_filtered *result)
{
    struct filter f = { .trace = trace, .cache = l1d, .out = result };

    *result = (struct replay_filtered){ 0 };
    bool good = filter(&f, flags & WARM);

    table_free(&f.table);
    numbers_free(&f.lines);
    free(f.tags);
    free(f.set);
    free(f.tag);
    if (!good)
        replay_filter_free(result);
    return good ? DONE : NO_MEMORY;
}

void replay_filter_free(struct replay_filtered *result)
{
    free(result->items);
    free(result->starts);
    free(result->sequence);
    *result = (struct replay_filtered){ 0 };
}
