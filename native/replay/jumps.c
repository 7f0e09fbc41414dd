/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Branch targets: an entry is the address of a run's last byte, its value the address that the run was left for. */
#include "replacement.h"
#include "worker.h"

/* In the state: tags of all sets, their values in the same places, then the run that is under way, plus one, its context, and how
 * many times a branch left.
 */
struct under_way { uint32_t run, context, times; };

static uint32_t *values_of(const struct worker *w)
{
    return (uint32_t *)w->state + (size_t)w->geometry.sets * w->geometry.ways;
}

static struct under_way *under_way(const struct worker *w)
{
    return (struct under_way *)(values_of(w) + (size_t)w->geometry.sets * w->geometry.ways);
}

static size_t state_bytes(const struct replay_job *job)
{
    const struct replay_cache *c = &job->caches[0];
    size_t bytes = (size_t)c->sets * c->ways * 2 * sizeof(uint32_t) + sizeof(struct under_way);

    return (bytes + 31) / 32 * 32;
}

static bool init(struct worker *w)
{
    struct jumps *j = &w->jumps;
    size_t n = w->plan->n_runs + 1;

    j->target = malloc(n * sizeof *j->target);
    j->branch = malloc(n * sizeof *j->branch);
    j->start = malloc(n * sizeof *j->start);
    return j->target && j->branch && j->start;
}

static void release(struct worker *w)
{
    numbers_free(&w->jumps.tags);
    numbers_free(&w->jumps.targets);
    free(w->jumps.target);
    free(w->jumps.branch);
    free(w->jumps.start);
}

static enum status place(struct worker *w, const uint64_t *layout)
{
    struct jumps *j = &w->jumps;
    struct geometry *g = &w->geometry;

    g->state_bytes = state_bytes(w->job);
    numbers_clear(&j->tags);
    numbers_clear(&j->targets);
    for (uint32_t i = 0; i < w->plan->n_runs; i++) {
        const struct run *run = &w->plan->runs[i];
        uint64_t start = layout[run->function] + run->offset, last = start + (run->bytes - 1);
        uint32_t tag = number_of(&j->tags, last);

        j->start[i] = start;
        j->target[i] = number_of(&j->targets, start);
        j->branch[i] = tag << g->set_bits | (uint32_t)((last >> g->line_shift) & (g->sets - 1));
        if (!tag || !j->target[i])
            return NO_MEMORY;
    }
    return (uint64_t)j->tags.n << g->set_bits > UINT32_MAX ? TOO_MANY_LINES : DONE;
}

/* Puts the branch before the first so many of its set. */
static void put_first(uint32_t *tags, uint32_t *values, uint32_t before, uint32_t tag, uint32_t target)
{
    memmove(tags + 1, tags, before * sizeof *tags);
    memmove(values + 1, values, before * sizeof *values);
    tags[0] = tag;
    values[0] = target;
}

/* Uses the branch. Whether it was not there, or went elsewhere the last time. */
static bool missed(struct worker *w, uint32_t branch, uint32_t target)
{
    const struct geometry *g = &w->geometry;
    size_t first = (size_t)(branch & (g->sets - 1)) * g->ways;
    uint32_t *tags = (uint32_t *)w->state + first, *values = values_of(w) + first;
    uint32_t tag = branch >> g->set_bits, way = 0;

    while (way < g->ways - 1 && tags[way] != tag)
        way++;
    bool there = tags[way] == tag, hit = there && values[way] == target;

    if (g->replacement == LEAST_RECENT || (g->replacement == ROUND_ROBIN && !there)) {
        put_first(tags, values, way, tag, target);
        return !hit;
    }
    if (!there && (way = way_of(tags, g->ways, tag)) == g->ways)
        way = random_way(++under_way(w)->times, g->ways);
    tags[way] = tag;
    values[way] = target;
    return !hit;
}

static bool taken(const struct worker *w, uint32_t from, uint32_t to)
{
    return w->jumps.start[from] + w->plan->runs[from].bytes != w->jumps.start[to];
}

/* Makes all branches in the order of their last execution: this leaves what a whole pass leaves. */
static bool warm(struct worker *w)
{
    for (uint32_t i = 0; i < w->plan->n_jumps; i++) {
        struct pair jump = w->plan->jumps[i];

        if (taken(w, jump.from, jump.to))
            missed(w, w->jumps.branch[jump.from], w->jumps.target[jump.to]);
    }
    return true;
}

static bool simulate_piece(struct worker *w, uint32_t piece, uint32_t context)
{
    const struct plan *plan = w->plan;
    struct under_way at = *under_way(w);
    uint64_t before = w->log_end - w->log;

    if (!log_reserve(w, plan->starts[piece + 1] - plan->starts[piece] + 1))
        return false;
    for (uint64_t i = plan->starts[piece]; i < plan->starts[piece + 1]; i++) {
        uint32_t to = plan->items[i], from = at.run - 1;

        if (at.run && is_branch(at.context, context) && taken(w, from, to)) {
            *w->log_end = plan->runs[from].function;
            w->log_end += missed(w, w->jumps.branch[from], w->jumps.target[to]);
            w->stats[TOUCHES]++;
        }
        at = (struct under_way){ to + 1, context, 0 };
    }
    at.times = under_way(w)->times;
    *under_way(w) = at;
    w->misses[context] += w->log_end - w->log - before;
    return true;
}

/* No branch goes from one pass to the next. */
static void settle(struct worker *w)
{
    under_way(w)->run = under_way(w)->context = 0;
}

const struct mode mode_branches = { state_bytes, init, place, warm, settle, simulate_piece, release };
