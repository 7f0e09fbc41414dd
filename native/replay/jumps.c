/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Branch targets: an entry is the address of a run's last byte, its value the address that the run was left for. */
#include "worker.h"

/* In the state: tags of all sets, their values in the same places, then the run that is under way and its context. */
struct under_way { uint32_t run, context; };

static uint32_t *values_of(const struct worker *w)
{
    return (uint32_t *)w->state + (size_t)w->geometry.sets * w->geometry.ways;
}

static struct under_way *under_way(const struct worker *w)
{
    return (struct under_way *)(values_of(w) + (size_t)w->geometry.sets * w->geometry.ways);
}

size_t jumps_state_bytes(const struct geometry *g)
{
    size_t bytes = (size_t)g->sets * g->ways * 2 * sizeof(uint32_t) + sizeof(struct under_way);

    return (bytes + 31) / 32 * 32;
}

enum status jumps_make(struct worker *w, const uint64_t *layout)
{
    const struct plan *plan = w->plan;
    const struct geometry *g = &w->geometry;

    numbers_clear(&w->places.tags);
    numbers_clear(&w->targets);
    for (uint32_t i = 0; i < plan->n_runs; i++) {
        const struct run *run = &plan->runs[i];
        uint64_t start = layout[run->function] + run->offset, last = start + (run->bytes - 1);
        uint32_t tag = number_of(&w->places.tags, last);

        w->start[i] = start;
        w->target[i] = number_of(&w->targets, start);
        w->branch[i] = tag << g->set_bits | (uint32_t)((last >> g->line_shift) & (g->sets - 1));
        if (!tag || !w->target[i])
            return NO_MEMORY;
    }
    return (uint64_t)w->places.tags.n << g->set_bits > UINT32_MAX ? TOO_MANY_LINES : DONE;
}

/* Makes the branch the most recent of its set. Whether it was not there, or went elsewhere the last time. */
static bool missed(struct worker *w, uint32_t branch, uint32_t target)
{
    const struct geometry *g = &w->geometry;
    size_t first = (size_t)(branch & (g->sets - 1)) * g->ways;
    uint32_t *tags = (uint32_t *)w->state + first, *values = values_of(w) + first;
    uint32_t tag = branch >> g->set_bits, way = 0;

    while (way < g->ways - 1 && tags[way] != tag)
        way++;
    bool hit = tags[way] == tag && values[way] == target;

    memmove(tags + 1, tags, way * sizeof *tags);
    memmove(values + 1, values, way * sizeof *values);
    tags[0] = tag;
    values[0] = target;
    return !hit;
}

static bool taken(const struct worker *w, uint32_t from, uint32_t to)
{
    return w->start[from] + w->plan->runs[from].bytes != w->start[to];
}

void jumps_warm(struct worker *w)
{
    under_way(w)->run = NONE;
    if (!(w->job->flags & WARM))
        return;
    for (uint32_t i = 0; i < w->plan->n_jumps; i++) {
        struct pair jump = w->plan->jumps[i];

        if (taken(w, jump.from, jump.to))
            missed(w, w->branch[jump.from], w->target[jump.to]);
    }
}

bool jumps_piece(struct worker *w, uint32_t piece, uint32_t context)
{
    const struct plan *plan = w->plan;
    struct under_way at = *under_way(w);

    if (!log_reserve(w, plan->starts[piece + 1] - plan->starts[piece]))
        return false;
    for (uint64_t i = plan->starts[piece]; i < plan->starts[piece + 1]; i++) {
        uint32_t to = plan->items[i];

        if (at.run != NONE && is_branch(at.context, context) && taken(w, at.run, to)) {
            *w->log_end = plan->runs[at.run].function;
            w->log_end += missed(w, w->branch[at.run], w->target[to]);
            w->stats[TOUCHES]++;
        }
        at = (struct under_way){ to, context };
    }
    *under_way(w) = at;
    return true;
}
