/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Simulates units under one layout, piece by piece. */
#include "worker.h"

#define MOST_KEPT (1u << 22) /* touches */
#define FEW_LINES UINT16_MAX

enum status worker_init(struct worker *w, const struct plan *plan, const struct replay_job *job)
{
    struct geometry *g = &w->geometry;
    bool branches = job->kind == BRANCHES;

    w->plan = plan;
    w->job = job;
    w->memo_allowed = job->flags & MEMO;
    *g = (struct geometry){ .sets = job->sets, .ways = job->ways, .line_shift = job->line_shift };
    g->set_bits = (uint32_t)__builtin_ctz(job->sets);
    g->state_bytes = jumps_state_bytes(g);
    w->most_state_bytes = branches ? g->state_bytes : touch_most_state_bytes(g);
    w->state = aligned_alloc(64, (w->most_state_bytes + 63) / 64 * 64);
    w->kept = calloc(plan->n_pieces + 1, sizeof *w->kept);
    w->latest = calloc(g->sets, sizeof *w->latest);
    if (branches) {
        w->target = malloc((plan->n_runs + 1) * sizeof *w->target);
        w->branch = malloc((plan->n_runs + 1) * sizeof *w->branch);
        w->start = malloc((plan->n_runs + 1) * sizeof *w->start);
    }
    bool good = w->state && w->kept && w->latest && memo_init(&w->memo, plan, w->most_state_bytes) &&
        log_reserve(w, 4096) && (!branches || (w->target && w->branch && w->start));

    return good ? DONE : NO_MEMORY;
}

void worker_free(struct worker *w)
{
    places_free(&w->places);
    numbers_free(&w->targets);
    memo_free(&w->memo);
    free(w->kept_touches.all);
    free(w->scratch.all);
    free(w->kept);
    free(w->latest);
    free(w->state);
    free(w->log);
    free(w->target);
    free(w->branch);
    free(w->start);
}

struct appending { struct touch *all; uint64_t *latest, n, epoch; uint32_t mask; };

/* Drops a line that its set saw last: it changes nothing there and is a hit. */
static inline void append(struct appending *a, uint32_t line, uint32_t function)
{
    uint64_t *latest = &a->latest[line & a->mask], now = a->epoch | line;

    a->all[a->n] = (struct touch){ line, function };
    a->n += *latest != now;
    *latest = now;
}

/* The touches of runs in a row, at the end of `out`. Nearly all runs have one line or two. */
static bool append_runs(struct worker *w, const uint32_t *runs, uint64_t n, struct touches *out)
{
    const struct places *p = &w->places;
    struct appending a = { .latest = w->latest, .n = out->n, .epoch = ++w->epoch << 32 };

    a.mask = w->geometry.sets - 1;
    if (!touches_reserve(out, 2 * n + 1))
        return false;
    a.all = out->all;
    for (uint64_t i = 0; i < n; i++) {
        const struct place *place = &p->all[runs[i]];
        uint32_t more = place->more, end = place[1].more;

        append(&a, place->lines[0], place->function);
        append(&a, place->lines[1], place->function);
        if (more == end)
            continue;
        out->n = a.n;
        if (!touches_reserve(out, end - more + 2 * (n - i)))
            return false;
        a.all = out->all;
        for (; more < end; more++)
            append(&a, p->more[more], place->function);
    }
    out->n = a.n;
    return true;
}

/* They are kept if the piece comes again. */
const struct touch *touches_of(struct worker *w, uint32_t piece, uint64_t *n)
{
    struct kept *kept = &w->kept[piece];
    bool keep = w->plan->executions[piece] > 1 && w->kept_touches.n < MOST_KEPT;
    struct touches *out = keep ? &w->kept_touches : &w->scratch;

    if (kept->layout != w->layout) {
        const uint64_t *runs = &w->plan->starts[piece];
        uint64_t start = keep ? out->n : 0;

        out->n = start;
        if (!append_runs(w, w->plan->items + runs[0], runs[1] - runs[0], out))
            return NULL;
        *n = out->n - start;
        if (!keep)
            return out->all;
        *kept = (struct kept){ start, *n, w->layout };
    }
    *n = kept->n;
    return w->kept_touches.all + kept->start;
}

static bool simulate_piece(struct worker *w, uint32_t piece, uint32_t context)
{
    uint64_t n;

    if (w->job->kind == BRANCHES)
        return jumps_piece(w, piece, context);
    const struct touch *touches = touches_of(w, piece, &n);

    if (!touches || !log_reserve(w, n + 1))
        return false;
    w->log_end = w->touch(&w->geometry, w->state, touches, n, w->log_end);
    w->stats[TOUCHES] += n;
    return true;
}

bool simulate_unit(struct worker *w, uint32_t unit)
{
    const struct units *units = &w->plan->units;

    memset(w->misses, 0, sizeof w->misses);
    w->stats[SIMULATED]++;
    for (uint64_t i = units->starts[unit]; i < units->starts[unit + 1]; i++) {
        uint32_t symbol = units->symbols[i], context = symbol & 3;
        uint64_t before = w->log_end - w->log;

        if (!simulate_piece(w, symbol >> 2, context))
            return false;
        w->misses[context] += w->log_end - w->log - before;
    }
    return true;
}

/* Touches all runs in the order of their last execution: this leaves what a whole pass leaves. */
static bool warm_lines(struct worker *w)
{
    struct touches *out = &w->scratch;

    out->n = 0;
    if (!append_runs(w, w->plan->order, w->plan->n_order, out) || !log_reserve(w, out->n + 1))
        return false;
    w->touch(&w->geometry, w->state, out->all, out->n, w->log);
    return true;
}

enum status worker_prepare(struct worker *w, const uint64_t *layout)
{
    struct geometry *g = &w->geometry;
    bool lines = w->job->kind == LINES;
    enum status status = lines ? places_make(&w->places, w->plan, layout, g) : jumps_make(w, layout);

    if (status != DONE)
        return status;
    if (lines)
        w->touch = touch_choose(g, w->places.tags.n < FEW_LINES, w->job->flags & PORTABLE);
    w->layout++;
    w->kept_touches.n = 0;
    w->log_end = w->log;
    memset(w->state, 0, g->state_bytes);
    if (!lines)
        jumps_warm(w);
    else if (w->job->flags & WARM && !warm_lines(w))
        return NO_MEMORY;
    return DONE;
}

enum status worker_layout(struct worker *w, uint64_t index)
{
    uint64_t n = w->job->n_functions, *total = w->job->total + index * CONTEXTS;
    uint64_t *by_function = w->job->by_function ? w->job->by_function + index * n : NULL;

    enum status status = worker_prepare(w, w->job->layouts + index * n);

    if (status != DONE)
        return status;
    w->stats[UNITS] += w->plan->units.n_sequence;
    return memo_walk(w, total, by_function) ? DONE : NO_MEMORY;
}
