/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What of a front end's trace holds for every layout: its steps, how each goes on, and where direct jumps go. */
#include "frontend.h"

#define MOST_STEP_BYTES (1u << 16)

struct end { uint64_t offset; uint32_t function; };

struct making {
    struct frontend_plan *plan;
    const struct frontend_trace *trace;
    struct table steps, ends;
    struct end *end_values;
    uint32_t step_capacity, end_capacity;
};

static bool same_step(const void *owner, uint32_t id, const void *key)
{
    const struct step *a = &((const struct frontend_plan *)owner)->steps[id], *b = key;

    return a->offset == b->offset && a->function == b->function && a->bytes == b->bytes && a->insns == b->insns && a->kind == b->kind;
}

static bool same_end(const void *owner, uint32_t id, const void *key)
{
    const struct end *a = &((const struct making *)owner)->end_values[id], *b = key;

    return a->offset == b->offset && a->function == b->function;
}

/* Room for one more; false if memory is short. */
static bool grow(void **array, uint32_t n, uint32_t *capacity, size_t size)
{
    if (n < *capacity)
        return true;
    uint32_t larger = *capacity ? 2 * *capacity : 4096;
    void *moved = realloc(*array, larger * size);

    if (!moved)
        return false;
    *array = moved;
    *capacity = larger;
    return true;
}

static uint32_t end_number(struct making *m, const struct step *step)
{
    struct end end = { step->offset + step->bytes, step->function };
    uint64_t hash = mix_two(end.offset, end.function);
    uint32_t id = table_get(&m->ends, hash, same_end, m, &end);

    if (id != NONE)
        return id;
    if (!grow((void **)&m->end_values, m->plan->n_ends, &m->end_capacity, sizeof end) ||
        !table_put(&m->ends, hash, m->plan->n_ends))
        return NONE;
    m->end_values[m->plan->n_ends] = end;
    return m->plan->n_ends++;
}

/* The step's number, or NONE if memory is short. */
static uint32_t step_number(struct making *m, const struct step *step)
{
    struct frontend_plan *plan = m->plan;
    uint64_t hash = mix_two(step->offset + ((uint64_t)step->insns << 40), (uint64_t)step->function << 32 | step->bytes << 3 | step->kind);
    uint32_t id = table_get(&m->steps, hash, same_step, plan, step), capacity = m->step_capacity;

    if (id != NONE)
        return id;
    if (plan->n_steps == 1u << OUTCOME_SHIFT || !grow((void **)&plan->steps, plan->n_steps, &m->step_capacity, sizeof *step))
        return NONE;
    if (!grow((void **)&plan->ends, plan->n_steps, &capacity, sizeof *plan->ends) || !table_put(&m->steps, hash, plan->n_steps))
        return NONE;
    plan->steps[plan->n_steps] = *step;
    plan->ends[plan->n_steps] = end_number(m, step);
    return plan->ends[plan->n_steps] == NONE ? NONE : plan->n_steps++;
}

static bool goes_on(const struct step *open, const struct step *next)
{
    return open->bytes && open->kind == JUMP_NONE && open->function == next->function &&
        open->offset + open->bytes == next->offset && open->bytes + next->bytes <= MOST_STEP_BYTES;
}

/* The piece's steps into `out`; how many there are, or NONE if memory is short. */
static uint32_t piece_steps(struct making *m, uint64_t piece, uint32_t *out)
{
    const struct replay_trace *t = &m->trace->trace;
    struct step open = { 0 };
    uint32_t n = 0;

    for (uint64_t i = t->starts[piece]; i < t->starts[piece + 1]; i++) {
        uint32_t block = t->items[i];

        if (block & DATA_ITEM)
            continue;
        struct step next = { t->offsets[block], t->functions[block], t->sizes[block], m->trace->insns[block],
                             m->trace->jumps[block] };

        if (goes_on(&open, &next)) {
            open.bytes += next.bytes;
            open.insns += next.insns;
            open.kind = next.kind;
            continue;
        }
        if (open.bytes && (out[n++] = step_number(m, &open)) == NONE)
            return NONE;
        open = next;
    }
    if (open.bytes && (out[n++] = step_number(m, &open)) == NONE)
        return NONE;
    return n;
}

static bool make_steps(struct making *m)
{
    const struct replay_trace *t = &m->trace->trace;
    struct frontend_plan *plan = m->plan;
    uint64_t n = 0;

    for (uint64_t piece = 0; piece < t->n_pieces; piece++) {
        uint32_t added = piece_steps(m, piece, plan->items + n);

        if (added == NONE)
            return false;
        n += added;
        plan->starts[piece + 1] = n;
    }
    return true;
}

static bool is_direct(uint32_t kind)
{
    return kind == JUMP_CONDITIONAL || kind == JUMP_DIRECT || kind == JUMP_CALL;
}

static bool is_straight(const struct step *from, const struct step *to)
{
    return from->function == to->function && from->offset + from->bytes == to->offset;
}

/* A direct jump has one target. What else follows it is an exception, or another task: the target is what follows most (Boyer and Moore's
 * vote, exact where more than half agree). */
static void vote(struct frontend_plan *plan, uint32_t from, uint32_t to, int64_t times)
{
    const struct step *a = &plan->steps[from], *b = &plan->steps[to];
    struct target *target = &plan->targets[plan->ends[from]];

    if (!is_direct(a->kind) || is_straight(a, b) || !times)
        return;
    if (target->votes && target->function == b->function && target->offset == b->offset)
        target->votes += times;
    else if (target->votes >= times)
        target->votes -= times;
    else
        *target = (struct target){ b->offset, b->function, times - target->votes };
}

uint32_t frontend_outcome(const struct frontend_plan *plan, uint32_t from, uint32_t to)
{
    const struct step *a = &plan->steps[from], *b = &plan->steps[to];
    const struct target *target = &plan->targets[plan->ends[from]];

    if (is_straight(a, b) && a->kind != JUMP_SYSTEM)
        return STRAIGHT;
    if (a->kind == JUMP_NONE || a->kind == JUMP_SYSTEM)
        return AWAY;
    if (is_direct(a->kind) && (target->function != b->function || target->offset != b->offset))
        return AWAY;
    return TAKEN;
}

static void mark_outcomes(struct frontend_plan *plan)
{
    for (uint32_t piece = 0; piece < plan->n_pieces; piece++)
        for (uint64_t k = plan->starts[piece]; k < plan->starts[piece + 1]; k++) {
            bool last = k + 1 == plan->starts[piece + 1];

            plan->items[k] |= (last ? LAST : frontend_outcome(plan, plan->items[k], plan->items[k + 1])) << OUTCOME_SHIFT;
        }
}

/* Calls `visit` for all steps that were executed in a row across the border of two pieces, backwards. Where an interrupt enters, that is the
 * interrupted one and the one with which its context goes on. */
static bool each_border(struct frontend_plan *plan, bool (*visit)(struct frontend_plan *plan, uint32_t from, uint32_t to, bool resumes))
{
    uint32_t next = NONE, next_context = OWN, first[CONTEXTS] = { NONE, NONE, NONE };

    for (uint64_t i = plan->n_executed; i--;) {
        uint32_t piece = plan->sequence[i], context = plan->contexts[i];
        uint64_t start = plan->starts[piece], end = plan->starts[piece + 1];

        if (start == end)
            continue;
        bool resumes = next != NONE && !is_branch(context, next_context);

        if (next != NONE && !visit(plan, STEP(plan->items[end - 1]), resumes ? first[context] : next, resumes))
            return false;
        next = first[context] = STEP(plan->items[start]);
        next_context = context;
    }
    return true;
}

static bool vote_at_border(struct frontend_plan *plan, uint32_t from, uint32_t to, bool resumes)
{
    if (to != NONE)
        vote(plan, from, to, 1);
    plan->n_resumed += resumes;
    return true;
}

static bool keep_resumed(struct frontend_plan *plan, uint32_t from, uint32_t to, bool resumes)
{
    (void)from;
    if (resumes)
        plan->resumed[--plan->n_resumed] = to;
    return true;
}

static bool make_targets(struct frontend_plan *plan)
{
    uint64_t *executions = calloc(plan->n_pieces + 1, sizeof *executions);

    plan->targets = calloc(plan->n_ends + 1, sizeof *plan->targets);
    if (executions && plan->targets) {
        for (uint64_t i = 0; i < plan->n_executed; i++)
            executions[plan->sequence[i]]++;
        for (uint32_t piece = 0; piece < plan->n_pieces; piece++)
            for (uint64_t k = plan->starts[piece]; k < plan->starts[piece + 1]; k++) {
                uint32_t kind = plan->steps[plan->items[k]].kind;

                plan->n_branches += kind != JUMP_NONE && kind != JUMP_SYSTEM ? executions[piece] : 0;
                if (k + 1 < plan->starts[piece + 1])
                    vote(plan, plan->items[k], plan->items[k + 1], (int64_t)executions[piece]);
            }
    }
    free(executions);
    return executions && plan->targets;
}

static bool make_resumed(struct frontend_plan *plan)
{
    uint64_t n = plan->n_resumed;

    plan->resumed = malloc((n + 1) * sizeof *plan->resumed);
    if (!plan->resumed || !each_border(plan, keep_resumed))
        return false;
    plan->n_resumed = n;
    return true;
}

static bool copy(const struct replay_trace *t, struct frontend_plan *plan)
{
    plan->n_pieces = (uint32_t)t->n_pieces;
    plan->n_executed = t->n_executed;
    plan->items = malloc((t->starts[t->n_pieces] + 1) * sizeof *plan->items);
    plan->starts = calloc(t->n_pieces + 1, sizeof *plan->starts);
    plan->sequence = malloc((t->n_executed + 1) * sizeof *plan->sequence);
    plan->contexts = malloc(t->n_executed + 1);
    if (!plan->items || !plan->starts || !plan->sequence || !plan->contexts)
        return false;
    if (t->n_executed) {
        memcpy(plan->sequence, t->sequence, t->n_executed * sizeof *plan->sequence);
        memcpy(plan->contexts, t->contexts, t->n_executed);
    }
    return true;
}

struct frontend_plan *frontend_plan(const struct frontend_trace *trace)
{
    struct making m = { .plan = calloc(1, sizeof *m.plan), .trace = trace };
    struct frontend_plan *plan = m.plan;
    bool good = plan && copy(&trace->trace, plan) && make_steps(&m) && make_targets(plan) && each_border(plan, vote_at_border);

    table_free(&m.steps);
    table_free(&m.ends);
    free(m.end_values);
    if (good) {
        mark_outcomes(plan);
        good = make_resumed(plan);
    }
    if (good)
        return plan;
    frontend_free(plan);
    return NULL;
}

void frontend_free(struct frontend_plan *plan)
{
    if (!plan)
        return;
    free(plan->steps);
    free(plan->items);
    free(plan->starts);
    free(plan->sequence);
    free(plan->contexts);
    free(plan->ends);
    free(plan->targets);
    free(plan->resumed);
    free(plan);
}

uint64_t frontend_branches(const struct frontend_plan *plan)
{
    return plan->n_branches;
}
