/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who puts out whose lines: each miss is laid to the function whose touch evicted that line the last time. */
#include "replay.h"

#include "replacement.h"
#include "worker.h"

struct collisions {
    struct replay_collision *all;
    struct table table;
    struct numbers lines; /* that were missed or evicted */
    uint32_t *evictors;   /* of each of them */
    uint32_t *tags;       /* the cache */
    uint32_t times;       /* that something left it */
    uint64_t n, capacity, n_evictors;
    bool measured;
};

static bool same_collision(const void *owner, uint32_t id, const void *key)
{
    const struct replay_collision *a = &((const struct collisions *)owner)->all[id], *b = key;

    return a->set == b->set && a->function == b->function && a->evictor == b->evictor;
}

static bool count(struct collisions *c, struct replay_collision collision)
{
    uint64_t hash = mix_two((uint64_t)collision.function << 32 | collision.evictor, collision.set);
    uint32_t id = table_get(&c->table, hash, same_collision, c, &collision);

    if (id == NONE) {
        if (c->n == c->capacity) {
            uint64_t capacity = c->capacity ? 2 * c->capacity : 1024;
            struct replay_collision *larger = realloc(c->all, capacity * sizeof *larger);

            if (!larger)
                return false;
            c->all = larger;
            c->capacity = capacity;
        }
        id = (uint32_t)c->n++;
        c->all[id] = collision;
        if (!table_put(&c->table, hash, id))
            return false;
    }
    c->all[id].misses++;
    return true;
}

/* Where the line's evictor stands; NULL if memory is short. */
static uint32_t *evictor_of(struct collisions *c, uint32_t line)
{
    uint32_t number = number_of(&c->lines, line);

    if (number > c->n_evictors) {
        uint64_t n = c->n_evictors ? 2 * c->n_evictors : 1024;
        uint32_t *larger = realloc(c->evictors, n * sizeof *larger);

        if (!larger)
            return NULL;
        memset(larger + c->n_evictors, 0xff, (n - c->n_evictors) * sizeof *larger);
        c->evictors = larger;
        c->n_evictors = n;
    }
    return number ? &c->evictors[number - 1] : NULL;
}

static bool touch(struct collisions *c, const struct worker *w, struct touch touch)
{
    const struct geometry *g = &w->geometry;
    uint32_t set = touch.line & (g->sets - 1), tag = touch.line >> g->set_bits;
    uint32_t out = cache_touch(&w->job->caches[0], c->tags + (size_t)set * g->ways, tag, &c->times);

    if (out == tag)
        return true;
    uint32_t *evictor = evictor_of(c, touch.line);

    if (!evictor)
        return false;
    if (c->measured && !count(c, (struct replay_collision){ 0, set, touch.function, *evictor }))
        return false;
    if (!out)
        return true;
    evictor = evictor_of(c, out << g->set_bits | set);
    if (!evictor)
        return false;
    *evictor = touch.function;
    return true;
}

static bool pass(struct collisions *c, struct worker *w)
{
    const struct units *units = &w->plan->units;

    for (uint64_t i = 0; i < units->n_sequence; i++) {
        uint32_t unit = units->sequence[i];

        for (uint64_t k = units->starts[unit]; k < units->starts[unit + 1]; k++) {
            uint64_t n;
            const struct touch *touches = touches_of(w, units->symbols[k] >> 2, &n);

            if (!touches)
                return false;
            for (uint64_t t = 0; t < n; t++)
                if (!touch(c, w, touches[t]))
                    return false;
        }
    }
    return true;
}

static enum status collect(struct collisions *c, struct worker *w, const struct plan *plan,
                           const struct replay_job *job)
{
    enum status status = worker_init(w, plan, job);

    if (status == DONE)
        status = worker_prepare(w, job->layouts);
    if (status != DONE)
        return status;
    c->tags = calloc((size_t)w->geometry.sets * w->geometry.ways, sizeof *c->tags);
    if (!c->tags || (job->flags & WARM && !pass(c, w)))
        return NO_MEMORY;
    c->measured = true;
    return pass(c, w) ? DONE : NO_MEMORY;
}

int replay_collisions(const struct plan *plan, const struct replay_job *job, struct replay_collision **all,
                      uint64_t *n)
{
    struct collisions c = { 0 };
    struct worker *w = calloc(1, sizeof *w);
    enum status status = w ? collect(&c, w, plan, job) : NO_MEMORY;

    if (w)
        worker_free(w);
    free(w);
    table_free(&c.table);
    numbers_free(&c.lines);
    free(c.evictors);
    free(c.tags);
    if (status != DONE) {
        free(c.all);
        c.all = NULL;
        c.n = 0;
    }
    *all = c.all;
    *n = c.n;
    return status;
}

void replay_forget(struct replay_collision *all)
{
    free(all);
}
