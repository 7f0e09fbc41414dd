/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A hash table of numbers: who asks keeps what the numbers stand for, and says whether it is the same. */
#ifndef KDELTA_TABLE_H
#define KDELTA_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

struct slot { uint32_t id, hash; }; /* id: the number plus one; 0 is a free slot */
struct table { struct slot *slots; uint64_t size, used; };

/* The finalizer of splitmix64: every bit of the key moves every bit of the hash. */
static inline uint64_t mix(uint64_t key)
{
    key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9u;
    key = (key ^ (key >> 27)) * 0x94d049bb133111ebu;
    return key ^ (key >> 31);
}

static inline uint64_t mix_two(uint64_t a, uint64_t b)
{
    return mix(mix(a) + b);
}

static inline void table_clear(struct table *t)
{
    if (t->used)
        memset(t->slots, 0, t->size * sizeof *t->slots);
    t->used = 0;
}

static inline void table_free(struct table *t)
{
    free(t->slots);
    *t = (struct table){ 0 };
}

static inline void table_insert(struct table *t, uint32_t hash, uint32_t id)
{
    uint64_t at = hash & (t->size - 1);

    while (t->slots[at].id)
        at = (at + 1) & (t->size - 1);
    t->slots[at] = (struct slot){ id + 1, hash };
    t->used++;
}

/* Adds a number that is not there yet. False if memory is short. */
static inline bool table_put(struct table *t, uint64_t hash, uint32_t id)
{
    if (2 * t->used >= t->size) {
        struct table larger = { .size = t->size ? 2 * t->size : 1024 };

        larger.slots = calloc(larger.size, sizeof *larger.slots);
        if (!larger.slots)
            return false;
        for (uint64_t i = 0; i < t->size; i++)
            if (t->slots[i].id)
                table_insert(&larger, t->slots[i].hash, t->slots[i].id - 1);
        free(t->slots);
        *t = larger;
    }
    table_insert(t, (uint32_t)hash, id);
    return true;
}

typedef bool same_fn(const void *owner, uint32_t id, const void *key);

/* The number for which `same` is true, or NONE. */
static inline uint32_t table_get(const struct table *t, uint64_t hash, same_fn *same,
                                 const void *owner, const void *key)
{
    if (!t->size)
        return NONE;
    for (uint64_t at = (uint32_t)hash & (t->size - 1); t->slots[at].id; at = (at + 1) & (t->size - 1))
        if (t->slots[at].hash == (uint32_t)hash && same(owner, t->slots[at].id - 1, key))
            return t->slots[at].id - 1;
    return NONE;
}

#endif
