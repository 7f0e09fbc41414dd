/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of code, or pages, in one cache. */
#include "worker.h"

#define MOST_KEPT (1u << 22) /* touches */
#define FEW_LINES UINT16_MAX

static size_t most_state_bytes(const struct replay_job *job)
{
    return touch_most_state_bytes(&job->caches[0]);
}

static bool init(struct worker *w)
{
    struct lines *l = &w->lines;

    l->places.shifts = w->job->shifts;
    l->kept = calloc(w->plan->n_pieces + 1, sizeof *l->kept);
    l->latest = calloc(w->geometry.sets, sizeof *l->latest);
    return l->kept && l->latest;
}

static void release(struct worker *w)
{
    places_free(&w->lines.places);
    free(w->lines.kept_touches.all);
    free(w->lines.scratch.all);
    free(w->lines.kept);
    free(w->lines.latest);
}

static enum status place(struct worker *w, const uint64_t *layout)
{
    struct lines *l = &w->lines;
    enum status status = places_make(&l->places, w->plan, layout, &w->geometry);

    if (status != DONE)
        return status;
    l->touch = touch_choose(&w->geometry, l->places.tags.n < FEW_LINES, w->job->flags & PORTABLE);
    l->kept_touches.n = 0;
    return DONE;
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
    const struct places *p = &w->lines.places;
    struct appending a = { .latest = w->lines.latest, .n = out->n, .epoch = ++w->lines.epoch << 32 };

    a.mask = w->geometry.sets - 1;
    if (!touches_reserve(out, 2 * n + 1))
        return false;
    a.all = out->all;
    for (uint64_t i = 0; i < n; i++) {
        const struct place *place = &p->all[runs[i]];
        uint32_t more = place->more, end = place[1].more;

        if (!place->lines[0])
            continue;
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
    struct lines *l = &w->lines;
    struct kept *kept = &l->kept[piece];
    bool keep = w->plan->executions[piece] > 1 && l->kept_touches.n < MOST_KEPT;
    struct touches *out = keep ? &l->kept_touches : &l->scratch;

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
    return l->kept_touches.all + kept->start;
}

static bool simulate_piece(struct worker *w, uint32_t piece, uint32_t context)
{
    uint64_t n, before = w->log_end - w->log;
    const struct touch *touches = touches_of(w, piece, &n);

    if (!touches || !log_reserve(w, n + 1))
        return false;
    w->log_end = w->lines.touch(&w->geometry, w->state, touches, n, w->log_end);
    w->misses[context] += w->log_end - w->log - before;
    w->stats[TOUCHES] += n;
    return true;
}

/* Touches all runs in the order of their last execution: this leaves what a whole pass leaves. */
static bool warm(struct worker *w)
{
    struct touches *out = &w->lines.scratch;

    out->n = 0;
    if (!append_runs(w, w->plan->order, w->plan->n_order, out) || !log_reserve(w, out->n + 1))
        return false;
    w->lines.touch(&w->geometry, w->state, out->all, out->n, w->log);
    return true;
}

const struct mode mode_lines = { most_state_bytes, init, place, warm, NULL, simulate_piece, release };
