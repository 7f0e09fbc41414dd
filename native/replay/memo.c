/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Walks the units: one that was simulated from this very state before is not simulated again. */
#include "worker.h"

#define STATE_BYTES (32u << 20) /* that are kept at most, by one thread */
#define MOST_EDGES (1u << 18)
#define MOST_LOG (1u << 23)

/* Of so many units in a row it is counted how many were found. If what they spared is less than what
 * keeping the others' states took, the memo rests for a while, and longer each time. To simulate a
 * unit takes about as long as to hash, copy and compare this many bytes of state. */
#define WINDOW 256
#define WINDOW_OF_LARGE 64
#define LARGE_STATE (1u << 14)
#define UNIT_BYTES (1u << 14)
#define LONGEST_REST (1u << 16)

struct sought { uint32_t from, unit; };
struct states { const uint8_t *all; size_t bytes; };

bool memo_init(struct memo *m, const struct plan *plan, size_t most_state_bytes)
{
    m->bytes = 4 * most_state_bytes > STATE_BYTES ? 4 * most_state_bytes : STATE_BYTES;
    /* Pages that are never touched take no memory. */
    m->states = aligned_alloc(64, (m->bytes + 63) / 64 * 64);
    m->edges = malloc(MOST_EDGES * sizeof *m->edges);
    m->recent = malloc((plan->units.n + 1) * sizeof *m->recent);
    return m->states && m->edges && m->recent;
}

void memo_free(struct memo *m)
{
    table_free(&m->state_table);
    table_free(&m->edge_table);
    free(m->states);
    free(m->edges);
    free(m->recent);
}

static void memo_clear(struct memo *m, const struct plan *plan)
{
    table_clear(&m->state_table);
    table_clear(&m->edge_table);
    m->n_edges = m->n_states = 0;
    m->state = NONE;
    memset(m->recent, 0xff, plan->units.n * sizeof *m->recent);
}

bool log_reserve(struct worker *w, uint64_t more)
{
    uint64_t used = w->log_end - w->log;

    if (used + more <= w->log_capacity)
        return true;
    uint64_t capacity = 2 * w->log_capacity > used + more ? 2 * w->log_capacity : used + more;
    uint32_t *larger = realloc(w->log, capacity * sizeof *larger);

    if (!larger)
        return false;
    w->log = larger;
    w->log_end = larger + used;
    w->log_capacity = capacity;
    return true;
}

static uint64_t state_hash(const uint8_t *state, size_t bytes)
{
    uint64_t sums[4] = { 1, 2, 3, 4 }, words[4];

    for (size_t i = 0; i < bytes; i += sizeof words) {
        memcpy(words, state + i, sizeof words);
        for (int k = 0; k < 4; k++)
            sums[k] = (sums[k] ^ words[k]) * 0x9e3779b97f4a7c15u + (sums[k] >> 29);
    }
    return mix_two(mix_two(sums[0], sums[1]), mix_two(sums[2], sums[3]));
}

static bool same_state(const void *owner, uint32_t id, const void *key)
{
    const struct states *s = owner;

    return !memcmp(s->all + id * s->bytes, key, s->bytes);
}

/* The number of the worker's state; NONE if memory is short. */
static uint32_t state_number(struct worker *w)
{
    struct memo *m = &w->memo;
    size_t bytes = w->geometry.state_bytes;
    struct states states = { m->states, bytes };
    uint64_t hash = state_hash(w->state, bytes);
    uint32_t id = table_get(&m->state_table, hash, same_state, &states, w->state);

    if (id != NONE)
        return id;
    if (!table_put(&m->state_table, hash, m->n_states))
        return NONE;
    memcpy(m->states + m->n_states * bytes, w->state, bytes);
    w->stats[STATES]++;
    return m->n_states++;
}

static bool same_edge(const void *owner, uint32_t id, const void *key)
{
    const struct edge *e = &((const struct edge *)owner)[id];
    const struct sought *s = key;

    return e->from == s->from && e->unit == s->unit;
}

static struct edge *edge_find(struct memo *m, uint32_t unit)
{
    uint32_t recent = m->recent[unit];
    struct sought sought = { m->state, unit };

    if (recent != NONE && m->edges[recent].from == m->state)
        return &m->edges[recent];
    recent = table_get(&m->edge_table, mix((uint64_t)m->state << 32 | unit), same_edge, m->edges, &sought);
    if (recent == NONE)
        return NULL;
    m->recent[unit] = recent;
    return &m->edges[recent];
}

static void add_misses(const struct worker *w, uint64_t *total, const uint32_t *misses, uint64_t uses)
{
    for (uint32_t i = 0; i < w->n_misses; i++)
        total[i] += uses * misses[i];
}

/* Adds up what the edges stand for. They and their log stay, to be used again. */
static void add_edges(struct worker *w, uint64_t *total, uint64_t *by_function)
{
    struct memo *m = &w->memo;

    for (uint64_t i = 0; i < m->n_edges; i++) {
        struct edge *e = &m->edges[i];
        const uint32_t *log = w->log + e->log_start;

        if (total)
            add_misses(w, total, e->misses, e->uses);
        for (uint32_t k = 0; total && by_function && k < e->n_log; k++)
            by_function[log[k]] += e->uses;
        e->uses = 0;
    }
}

void memo_leave(struct worker *w)
{
    struct memo *m = &w->memo;

    if (m->state != NONE)
        memcpy(w->state, m->states + m->state * w->geometry.state_bytes, w->geometry.state_bytes);
    m->state = NONE;
}

/* Simulates a unit from the worker's state, and counts its misses if `total` is there. */
static bool step_directly(struct worker *w, uint32_t unit, uint64_t *total, uint64_t *by_function)
{
    uint64_t used = w->log_end - w->log;

    memo_leave(w);
    if (!simulate_unit(w, unit))
        return false;
    for (uint32_t i = 0; total && i < w->n_misses; i++)
        total[i] += w->misses[i];
    for (const uint32_t *at = w->log + used; total && by_function && at < w->log_end; at++)
        by_function[*at]++;
    w->log_end = w->log + used;
    return true;
}

/* Simulates a unit from the memo's state and remembers it. */
static bool edge_add(struct worker *w, uint32_t unit, bool by_function)
{
    struct memo *m = &w->memo;
    struct edge e = { .uses = 1, .from = m->state, .unit = unit, .log_start = w->log_end - w->log };

    memcpy(w->state, m->states + m->state * w->geometry.state_bytes, w->geometry.state_bytes);
    if (!simulate_unit(w, unit))
        return false;
    for (uint32_t i = 0; i < w->n_misses; i++)
        e.misses[i] = (uint32_t)w->misses[i];
    if (!by_function)
        w->log_end = w->log + e.log_start;
    e.n_log = (uint32_t)(w->log_end - w->log - e.log_start);
    e.to = state_number(w);
    if (e.to == NONE || !table_put(&m->edge_table, mix((uint64_t)e.from << 32 | unit), (uint32_t)m->n_edges))
        return false;
    m->recent[unit] = (uint32_t)m->n_edges;
    m->edges[m->n_edges++] = e;
    m->state = e.to;
    return true;
}

static bool memo_full(const struct worker *w)
{
    const struct memo *m = &w->memo;

    return m->n_states + 2 > m->most_states || m->n_edges == MOST_EDGES ||
        w->log_end - w->log > (ptrdiff_t)MOST_LOG;
}

/* Whether the memo is worth its while at this point. */
static bool memo_on(struct worker *w)
{
    struct memo *m = &w->memo;

    if (!(w->job->flags & MEMO))
        return false;
    if (m->rest) {
        m->rest--;
        return false;
    }
    uint64_t bytes = w->geometry.state_bytes;

    if (m->tried == (bytes < LARGE_STATE ? WINDOW : WINDOW_OF_LARGE)) {
        bool poor = (uint64_t)m->found * UNIT_BYTES < (m->tried - m->found) * (bytes + 1024);

        m->pause = !poor ? 0 : m->pause ? 2 * m->pause : WINDOW;
        if (m->pause > LONGEST_REST)
            m->pause = LONGEST_REST;
        m->rest = m->pause;
        m->tried = m->found = 0;
        return !m->rest;
    }
    return true;
}

void memo_start(struct worker *w)
{
    struct memo *m = &w->memo;

    w->log_end = w->log;
    m->tried = m->found = m->pause = m->rest = 0;
    m->most_states = (uint32_t)(m->bytes / w->geometry.state_bytes);
    memo_clear(m, w->plan);
}

static bool step(struct worker *w, uint32_t unit, uint64_t *total, uint64_t *by_function)
{
    struct memo *m = &w->memo;

    if (!memo_on(w))
        return step_directly(w, unit, total, by_function);
    if (memo_full(w)) {
        add_edges(w, total, by_function);
        memo_leave(w);
        memo_clear(m, w->plan);
        w->log_end = w->log;
    }
    if (m->state == NONE && (m->state = state_number(w)) == NONE)
        return false;
    struct edge *e = edge_find(m, unit);

    m->tried++;
    if (!e)
        return edge_add(w, unit, by_function);
    m->found++;
    e->uses++;
    m->state = e->to;
    return true;
}

bool memo_walk(struct worker *w, uint64_t *total, uint64_t *by_function)
{
    const struct units *units = &w->plan->units;

    for (uint64_t i = 0; i < units->n_sequence; i++)
        if (!step(w, units->sequence[i], total, by_function))
            return false;
    w->stats[UNITS] += units->n_sequence;
    add_edges(w, total, by_function);
    return true;
}
