/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A cache that is touched line by line. */
#ifndef KDELTA_TOUCH_H
#define KDELTA_TOUCH_H

#include "job.h"

/* One touch of a line. `line` holds the set in its low bits; the tag above them is a number from 1 on. */
struct touch { uint32_t line, function; };

struct touches { struct touch *all; uint64_t n, capacity; };

/* Makes room for `more` touches. */
static inline bool touches_reserve(struct touches *t, uint64_t more)
{
    if (t->n + more <= t->capacity)
        return true;
    uint64_t capacity = 2 * t->capacity > t->n + more ? 2 * t->capacity : t->n + more;
    struct touch *larger = realloc(t->all, capacity * sizeof *larger);

    if (!larger)
        return false;
    t->all = larger;
    t->capacity = capacity;
    return true;
}

/* How a cache's state lies in memory. */
struct geometry {
    uint32_t sets, ways, set_bits, line_shift, replacement;
    uint32_t lanes;     /* tags that a set has room for */
    uint32_t tag_bytes;
    size_t times_at;    /* under RANDOM, where in the state is how many times something left */
    size_t state_bytes;
};

/* Makes the touches in turn and appends the function of each miss to the log. Returns the log's new end. */
typedef uint32_t *touch_fn(const struct geometry *g, void *state, const struct touch *touches, size_t n,
                           uint32_t *log);

/* Chooses the fastest one and lays out the state for it. few: tags fit in 16 bits. */
touch_fn *touch_choose(struct geometry *g, bool few, bool portable);

/* The same for policies other than LEAST_RECENT. It lays out the sets. */
touch_fn *touch_choose_other(struct geometry *g, bool few, bool portable);

/* What the state takes at most, whichever is chosen. */
size_t touch_most_state_bytes(const struct replay_cache *cache);

#endif
