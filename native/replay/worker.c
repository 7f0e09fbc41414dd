/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A layout from its places to its misses. */
#include "worker.h"

static const struct mode *const modes[] = {
    [LINES] = &mode_lines,
    [BRANCHES] = &mode_branches,
    [HIERARCHY] = &mode_hierarchy,
};

enum status worker_init(struct worker *w, const struct plan *plan, const struct replay_job *job)
{
    const struct replay_cache *cache = &job->caches[0];

    w->plan = plan;
    w->job = job;
    w->mode = modes[job->kind];
    w->n_misses = job->kind == HIERARCHY ? KINDS * CONTEXTS : CONTEXTS;
    w->geometry = (struct geometry){
        .sets = cache->sets, .ways = cache->ways, .line_shift = cache->line_shift,
        .set_bits = (uint32_t)__builtin_ctz(cache->sets), .replacement = cache->replacement,
    };
    size_t most = w->mode->most_state_bytes(job);

    w->state = aligned_alloc(64, (most + 63) / 64 * 64);
    bool good = w->state && memo_init(&w->memo, plan, most) && log_reserve(w, 4096);

    return good && w->mode->init(w) ? DONE : NO_MEMORY;
}

void worker_free(struct worker *w)
{
    if (w->mode)
        w->mode->free(w);
    memo_free(&w->memo);
    free(w->state);
    free(w->log);
}

bool simulate_unit(struct worker *w, uint32_t unit)
{
    const struct units *units = &w->plan->units;

    memset(w->misses, 0, sizeof w->misses);
    w->stats[SIMULATED]++;
    for (uint64_t i = units->starts[unit]; i < units->starts[unit + 1]; i++)
        if (!w->mode->piece(w, units->symbols[i] >> 2, units->symbols[i] & 3))
            return false;
    return true;
}

enum status worker_prepare(struct worker *w, const uint64_t *layout)
{
    w->layout++;
    w->log_end = w->log;
    enum status status = w->mode->place(w, layout);

    if (status == DONE)
        memset(w->state, 0, w->geometry.state_bytes);
    return status;
}

/* A whole pass, after which the caches are as it leaves them. */
static bool pass_before(struct worker *w)
{
    if (!memo_walk(w, NULL, w->job->by_function))
        return false;
    if (w->mode->settle) {
        memo_leave(w);
        w->mode->settle(w);
    }
    return true;
}

enum status worker_layout(struct worker *w, uint64_t index)
{
    const struct replay_job *job = w->job;
    uint64_t functions = job->n_functions * (job->kind == HIERARCHY ? 2 : 1);
    enum status status = worker_prepare(w, job->layouts + index * job->n_functions);
    bool warm = job->flags & WARM, by_order = w->mode->warm && job->caches[0].replacement == LEAST_RECENT;

    if (status != DONE)
        return status;
    if (warm && by_order && !w->mode->warm(w))
        return NO_MEMORY;
    memo_start(w);
    if (warm && !by_order && !pass_before(w))
        return NO_MEMORY;
    uint64_t *by_function = job->by_function ? job->by_function + index * functions : NULL;

    return memo_walk(w, job->total + index * w->n_misses, by_function) ? DONE : NO_MEMORY;
}
