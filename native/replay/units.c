/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sequence of pieces, cut into units where its content says so: what repeats is cut in the same way each time. */
#include "plan.h"

/* In runs. A unit is worth remembering if replaying it takes longer than looking it up does. */
#define LEAST 64
#define USUAL 256
#define MOST 2048

struct cutter {
    struct units *units;
    struct table table;
    uint64_t capacity; /* of units->starts */
};

static bool same_unit(const void *owner, uint32_t id, const void *key)
{
    const struct units *u = owner;
    const uint32_t *symbols = key; /* stands at the end of units->symbols */
    uint64_t n = u->starts[id + 1] - u->starts[id];

    return n == u->starts[u->n + 1] - u->starts[u->n] &&
        !memcmp(symbols, u->symbols + u->starts[id], n * sizeof *symbols);
}

/* What stands at the end of the symbols becomes a unit, or goes again if it is one already. */
static bool cut(struct cutter *c, uint64_t hash)
{
    struct units *u = c->units;
    uint32_t id = table_get(&c->table, hash, same_unit, u, u->symbols + u->starts[u->n]);

    if (id == NONE) {
        id = u->n++;
        if (!table_put(&c->table, hash, id))
            return false;
    }
    u->sequence[u->n_sequence++] = id;
    if (u->n + 2u > c->capacity) {
        uint64_t *larger = realloc(u->starts, 2 * c->capacity * sizeof *larger);

        if (!larger)
            return false;
        u->starts = larger;
        c->capacity *= 2;
    }
    return true;
}

/* One symbol in so many ends a unit, as a mask. */
static uint64_t cut_mask(const struct plan *plan, const struct replay_trace *t)
{
    uint64_t runs = 0, every = 1;

    for (uint32_t piece = 0; piece < plan->n_pieces; piece++)
        runs += (plan->starts[piece + 1] - plan->starts[piece]) * plan->executions[piece];
    while (every * runs < USUAL * t->n_executed && every < USUAL)
        every *= 2;
    return every - 1;
}

static bool cut_all(struct cutter *c, const struct plan *plan, const struct replay_trace *t)
{
    struct units *u = c->units;
    uint64_t mask = cut_mask(plan, t), hash = 0, runs = 0, n = 0;

    for (uint64_t i = 0; i < t->n_executed; i++) {
        uint32_t piece = t->sequence[i];
        uint64_t symbol_hash = mix((uint64_t)piece << 2 | t->contexts[i]);

        u->symbols[n++] = piece << 2 | t->contexts[i];
        hash = mix(hash + symbol_hash);
        runs += plan->starts[piece + 1] - plan->starts[piece];
        bool ends = (runs >= LEAST && !(symbol_hash & mask)) || runs >= MOST;

        if (!ends && i + 1 < t->n_executed)
            continue;
        u->starts[u->n + 1] = n;
        if (!cut(c, hash))
            return false;
        n = u->starts[u->n];
        hash = runs = 0;
    }
    return true;
}

bool units_make(struct plan *plan, const struct replay_trace *t)
{
    struct units *u = &plan->units;
    struct cutter c = { .units = u, .capacity = 1024 };

    u->symbols = malloc((t->n_executed + 1) * sizeof *u->symbols);
    u->sequence = malloc((t->n_executed + 1) * sizeof *u->sequence);
    u->starts = malloc(c.capacity * sizeof *u->starts);
    bool good = u->symbols && u->sequence && u->starts;

    if (good) {
        u->starts[0] = 0;
        good = cut_all(&c, plan, t);
    }
    table_free(&c.table);
    return good;
}
