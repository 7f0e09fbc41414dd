/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Blocks become runs; and what was executed last, from which a warm cache follows without a pass over the whole trace. */
#include "plan.h"

#define MOST_RUN_BYTES (1u << 16)

struct runs { struct run *all; struct table table; uint32_t n, capacity; };

static bool same_run(const void *owner, uint32_t id, const void *key)
{
    const struct run *a = &((const struct runs *)owner)->all[id], *b = key;

    return a->offset == b->offset && a->physical == b->physical && a->function == b->function &&
        a->bytes == b->bytes;
}

/* The run's number, or NONE if memory is short. */
static uint32_t run_number(struct runs *runs, const struct run *run)
{
    uint64_t hash = mix_two(run->offset + mix(run->physical), (uint64_t)run->function << 32 | run->bytes);
    uint32_t id = table_get(&runs->table, hash, same_run, runs, run);

    if (id != NONE)
        return id;
    if (runs->n == runs->capacity) {
        uint32_t capacity = runs->capacity ? 2 * runs->capacity : 4096;
        struct run *larger = realloc(runs->all, capacity * sizeof *larger);

        if (!larger)
            return NONE;
        runs->all = larger;
        runs->capacity = capacity;
    }
    if (!table_put(&runs->table, hash, runs->n))
        return NONE;
    runs->all[runs->n] = *run;
    return runs->n++;
}

static bool follows(const struct run *open, const struct run *next)
{
    return open->bytes && open->function == next->function && open->physical == next->physical &&
        open->offset + open->bytes == next->offset && open->bytes + next->bytes <= MOST_RUN_BYTES;
}

/* The piece's runs into `out`; how many there are, or NONE if memory is short. */
static uint32_t piece_runs(struct runs *runs, const struct replay_trace *t, uint64_t piece, uint32_t *out)
{
    struct run open = { 0 };
    uint32_t n = 0;

    for (uint64_t i = t->starts[piece]; i < t->starts[piece + 1]; i++) {
        uint32_t block = t->items[i];

        if (block & DATA_ITEM && !t->physical)
            continue;
        if (block & DATA_ITEM) {
            if (open.bytes && (out[n++] = run_number(runs, &open)) == NONE)
                return NONE;
            open.bytes = 0;
            out[n++] = block;
            continue;
        }
        struct run next = { t->offsets[block], t->physical ? t->physical[block] : 0,
                            t->functions[block], t->sizes[block] };

        if (follows(&open, &next)) {
            open.bytes += next.bytes;
            continue;
        }
        if (open.bytes && (out[n++] = run_number(runs, &open)) == NONE)
            return NONE;
        open = next;
    }
    if (open.bytes && (out[n++] = run_number(runs, &open)) == NONE)
        return NONE;
    return n;
}

static bool make_runs(struct plan *plan, const struct replay_trace *t)
{
    struct runs runs = { 0 };
    uint64_t n = 0;
    bool good = true;

    for (uint64_t piece = 0; piece < t->n_pieces && good; piece++) {
        uint32_t added = piece_runs(&runs, t, piece, plan->items + n);

        good = added != NONE;
        n += good ? added : 0;
        plan->starts[piece + 1] = n;
    }
    table_free(&runs.table);
    plan->runs = runs.all;
    plan->n_runs = runs.n;
    return good;
}

static void count_executions(struct plan *plan, const struct replay_trace *t)
{
    for (uint64_t i = 0; i < t->n_executed; i++) {
        uint32_t *count = &plan->executions[t->sequence[i]];

        *count += *count != UINT32_MAX;
    }
}

/* The runs by their last execution. In a cache that evicts the least recently used line, nothing else of the past can be seen. */
static bool make_order(struct plan *plan, const struct replay_trace *t)
{
    uint8_t *seen_run = calloc(plan->n_runs + 1, 1), *seen_piece = calloc(plan->n_pieces + 1, 1);
    uint32_t n = plan->n_runs;

    plan->order = malloc((plan->n_runs + 1) * sizeof *plan->order);
    if (seen_run && seen_piece && plan->order) {
        for (uint64_t i = t->n_executed; i-- && n;) {
            uint32_t piece = t->sequence[i];

            for (uint64_t k = plan->starts[piece + 1]; !seen_piece[piece] && k-- > plan->starts[piece];)
                if (!seen_run[plan->items[k]]) {
                    seen_run[plan->items[k]] = 1;
                    plan->order[--n] = plan->items[k];
                }
            seen_piece[piece] = 1;
        }
        plan->n_order = plan->n_runs - n;
        memmove(plan->order, plan->order + n, plan->n_order * sizeof *plan->order);
    }
    free(seen_run);
    free(seen_piece);
    return seen_run && seen_piece && plan->order;
}

struct pairs { struct pair *all; struct table table; uint32_t n, capacity; };

static bool same_pair(const void *owner, uint32_t id, const void *key)
{
    const struct pair *a = &((const struct pairs *)owner)->all[id], *b = key;

    return a->from == b->from && a->to == b->to;
}

/* Adds a pair unless it is there. False if memory is short. */
static bool add_pair(struct pairs *pairs, struct pair pair)
{
    uint64_t hash = mix((uint64_t)pair.from << 32 | pair.to);

    if (table_get(&pairs->table, hash, same_pair, pairs, &pair) != NONE)
        return true;
    if (pairs->n == pairs->capacity) {
        uint32_t capacity = pairs->capacity ? 2 * pairs->capacity : 4096;
        struct pair *larger = realloc(pairs->all, capacity * sizeof *larger);

        if (!larger)
            return false;
        pairs->all = larger;
        pairs->capacity = capacity;
    }
    if (!table_put(&pairs->table, hash, pairs->n))
        return false;
    pairs->all[pairs->n++] = pair;
    return true;
}

/* The pairs of runs, the last one first. */
static bool collect_pairs(struct plan *plan, const struct replay_trace *t, struct pairs *pairs, uint8_t *seen)
{
    uint32_t next = NONE, next_context = OWN;

    for (uint64_t i = t->n_executed; i--;) {
        uint32_t piece = t->sequence[i];
        uint64_t start = plan->starts[piece], k = plan->starts[piece + 1];

        if (start == k)
            continue;
        if (next != NONE && is_branch(t->contexts[i], next_context) &&
            !add_pair(pairs, (struct pair){ plan->items[k - 1], next }))
            return false;
        for (; !seen[piece] && --k > start;)
            if (!add_pair(pairs, (struct pair){ plan->items[k - 1], plan->items[k] }))
                return false;
        seen[piece] = 1;
        next = plan->items[start];
        next_context = t->contexts[i];
    }
    return true;
}

static bool make_jumps(struct plan *plan, const struct replay_trace *t)
{
    struct pairs pairs = { 0 };
    uint8_t *seen = calloc(plan->n_pieces + 1, 1);
    bool good = seen && collect_pairs(plan, t, &pairs, seen);

    free(seen);
    table_free(&pairs.table);
    for (uint32_t i = 0; i < pairs.n / 2; i++) {
        struct pair other = pairs.all[i];

        pairs.all[i] = pairs.all[pairs.n - 1 - i];
        pairs.all[pairs.n - 1 - i] = other;
    }
    plan->jumps = pairs.all;
    plan->n_jumps = pairs.n;
    return good;
}

static bool make_data(struct plan *plan, const struct replay_trace *t)
{
    size_t bytes = t->n_data * sizeof *plan->data;

    plan->n_data = t->n_data;
    plan->data = malloc(bytes + 1);
    if (plan->data && t->n_data)
        memcpy(plan->data, t->data_physical, bytes);
    return plan->data;
}

static bool make_rest(struct plan *plan, const struct replay_trace *t)
{
    count_executions(plan, t);
    if (t->physical ? !make_data(plan, t) : !make_order(plan, t) || !make_jumps(plan, t))
        return false;
    return units_make(plan, t);
}

struct plan *plan_new(const struct replay_trace *t)
{
    struct plan *plan = calloc(1, sizeof *plan);

    if (!plan)
        return NULL;
    plan->n_pieces = (uint32_t)t->n_pieces;
    plan->items = malloc((t->starts[t->n_pieces] + 1) * sizeof *plan->items);
    plan->starts = calloc(t->n_pieces + 1, sizeof *plan->starts);
    plan->executions = calloc(t->n_pieces + 1, sizeof *plan->executions);
    if (plan->items && plan->starts && plan->executions && make_runs(plan, t) && make_rest(plan, t))
        return plan;
    plan_free(plan);
    return NULL;
}

void plan_free(struct plan *plan)
{
    if (!plan)
        return;
    free(plan->runs);
    free(plan->items);
    free(plan->starts);
    free(plan->executions);
    free(plan->order);
    free(plan->jumps);
    free(plan->data);
    free(plan->units.symbols);
    free(plan->units.starts);
    free(plan->units.sequence);
    free(plan);
}
