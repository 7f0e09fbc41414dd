/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Code through its first-level cache, with the misses of data, into one second-level cache.
 *
 * The first level is indexed by virtual and tagged by physical addresses, the second one knows physical ones alone. A miss fills both
 * levels; what one level evicts stays in the other.
 */
#include "worker.h"

#include "replacement.h"

static size_t tags_of(const struct replay_cache *cache)
{
    return (size_t)cache->sets * cache->ways;
}

static size_t state_bytes(const struct replay_job *job)
{
    size_t tags = CACHES; /* and how many times something left each */

    for (int i = 0; i < CACHES; i++)
        tags += tags_of(&job->caches[i]);
    return (tags * sizeof(uint32_t) + 31) / 32 * 32;
}

static bool init(struct worker *w)
{
    struct hierarchy *h = &w->hierarchy;

    h->starts = malloc((w->plan->n_runs + 1) * sizeof *h->starts);
    h->data = malloc((w->plan->n_data + 1) * sizeof *h->data);
    return h->starts && h->data;
}

static void release(struct worker *w)
{
    numbers_free(&w->hierarchy.lines);
    free(w->hierarchy.code);
    free(w->hierarchy.data);
    free(w->hierarchy.starts);
}

/* Where a line is; its tag is 0 if memory is short. All caches have lines of one size. */
static struct where where_is(struct worker *w, uint64_t virtual_line, uint64_t physical_line)
{
    const struct replay_cache *caches = w->job->caches;

    return (struct where){
        (uint32_t)virtual_line & (caches[L1I].sets - 1),
        (uint32_t)physical_line & (caches[L2].sets - 1),
        number_of(&w->hierarchy.lines, physical_line),
    };
}

static bool add_code(struct hierarchy *h, struct where where)
{
    if (h->n_code == h->capacity) {
        uint64_t capacity = h->capacity ? 2 * h->capacity : 4096;
        struct where *larger = realloc(h->code, capacity * sizeof *larger);

        if (!larger)
            return false;
        h->code = larger;
        h->capacity = capacity;
    }
    h->code[h->n_code++] = where;
    return where.tag;
}

static enum status place(struct worker *w, const uint64_t *layout)
{
    struct hierarchy *h = &w->hierarchy;
    const struct plan *plan = w->plan;
    uint32_t shift = w->geometry.line_shift;

    w->geometry.state_bytes = state_bytes(w->job);
    numbers_clear(&h->lines);
    h->n_code = 0;
    for (uint32_t i = 0; i < plan->n_runs; i++) {
        const struct run *run = &plan->runs[i];
        uint64_t start = layout[run->function] + run->offset;

        h->starts[i] = h->n_code;
        /* Pages and lines are aligned alike in both kinds of addresses. */
        for (uint64_t line = start >> shift; line <= (start + (run->bytes - 1)) >> shift; line++)
            if (!add_code(h, where_is(w, line, ((line << shift) + run->physical) >> shift)))
                return NO_MEMORY;
    }
    h->starts[plan->n_runs] = h->n_code;
    for (uint64_t i = 0; i < plan->n_data; i++) {
        h->data[i] = where_is(w, 0, plan->data[i] >> shift);
        if (!h->data[i].tag)
            return NO_MEMORY;
    }
    return DONE;
}

/* The tags of both caches in a state, and behind them how many times something left each. */
struct levels { uint32_t *tags[CACHES], *times; };

static struct levels levels_of(const struct worker *w)
{
    uint32_t *l1i = (uint32_t *)w->state, *l2 = l1i + tags_of(&w->job->caches[L1I]);

    return (struct levels){ { l1i, l2 }, l2 + tags_of(&w->job->caches[L2]) };
}

static inline bool missed(const struct worker *w, const struct levels *levels, int level, uint32_t set, uint32_t tag)
{
    const struct replay_cache *cache = &w->job->caches[level];

    return cache_touch(cache, levels->tags[level] + (size_t)set * cache->ways, tag, levels->times + level) != tag;
}

static void touch_code(struct worker *w, const struct levels *levels, uint32_t run, uint32_t context)
{
    const struct hierarchy *h = &w->hierarchy;
    uint32_t function = w->plan->runs[run].function;

    for (uint64_t k = h->starts[run]; k < h->starts[run + 1]; k++) {
        struct where where = h->code[k];

        w->stats[TOUCHES]++;
        if (!missed(w, levels, L1I, where.first_set, where.tag))
            continue;
        w->misses[L1I_MISSES * CONTEXTS + context]++;
        *w->log_end++ = function;
        if (!missed(w, levels, L2, where.second_set, where.tag))
            continue;
        w->misses[L2_CODE * CONTEXTS + context]++;
        *w->log_end++ = (uint32_t)w->job->n_functions + function;
    }
}

static bool simulate_piece(struct worker *w, uint32_t piece, uint32_t context)
{
    const struct plan *plan = w->plan;
    const struct levels levels = levels_of(w);

    for (uint64_t i = plan->starts[piece]; i < plan->starts[piece + 1]; i++) {
        uint32_t item = plan->items[i];

        if (!(item & DATA_ITEM)) {
            if (!log_reserve(w, 2 * (w->hierarchy.starts[item + 1] - w->hierarchy.starts[item])))
                return false;
            touch_code(w, &levels, item, context);
            continue;
        }
        struct where where = w->hierarchy.data[item & ~DATA_ITEM];

        w->stats[TOUCHES]++;
        w->misses[L2_DATA * CONTEXTS + context] += missed(w, &levels, L2, where.second_set, where.tag);
    }
    return true;
}

/* What reaches the second level depends on the first one, so no order of lines tells how a pass leaves it. */
const struct mode mode_hierarchy = { state_bytes, init, place, NULL, NULL, simulate_piece, release };
