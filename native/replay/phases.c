/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which call each executed block belongs to, of those that begin a phase.
 *
 * A trace says where execution went and not by which instructions. From one function to the first byte of another one is a call,
 * whose return will go on after the block that it came from; a tail call looks the same, and its return address is never used. To any
 * other place in another function is a return if a call on the stack waits for that address: all calls above it are over, too.
 * Else it is a jump between parts of a function, or into a task whose calls were not seen, and changes nothing.
 */
#include "replay.h"

#define DEPTH 512

/* A call that goes on: where it returns to, and the phase's call that it is in. */
struct call { uint64_t back; uint32_t inside; };

/* A phase's call: the rules that its function is of, and those of which it went through a function. */
struct opened { uint64_t rules, through; };

struct stack {
    struct call calls[DEPTH];
    uint32_t n, before; /* block that was executed last, or NONE */
};

struct splitter {
    const struct replay_phases *given;
    struct replay_split *out;
    struct stack stacks[CONTEXTS];
    struct opened *opened; /* of each of the phases' calls; number 0 is for what is in none */
    uint64_t capacity, changes_capacity;
    uint32_t current;
};

static bool grow(void **array, uint64_t n, uint64_t *capacity, size_t size)
{
    if (n < *capacity)
        return true;
    uint64_t larger = *capacity ? 2 * *capacity : 1024;
    void *moved = realloc(*array, larger * size);

    if (!moved)
        return false;
    *array = moved;
    *capacity = larger;
    return true;
}

static uint32_t inside_of(const struct stack *s)
{
    return s->n ? s->calls[s->n - 1].inside : 0;
}

/* Makes room on a full stack: what is far below was lost or left long ago. */
static void forget_oldest(struct stack *s)
{
    s->n = DEPTH / 2;
    memmove(s->calls, s->calls + DEPTH - s->n, s->n * sizeof *s->calls);
}

/* A place on the stack with this return address, counted from 1 on, or 0; not below `least`. */
static uint32_t waiting(const struct stack *s, uint64_t back, uint32_t least)
{
    for (uint32_t i = s->n; i > least; i--)
        if (s->calls[i - 1].back == back)
            return i;
    return 0;
}

/* Where the calls within the innermost one of a phase begin on the stack. */
static uint32_t first_within(const struct stack *s, uint32_t inside)
{
    uint32_t n = s->n;

    while (n && s->calls[n - 1].inside == inside)
        n--;
    return n + (inside && n < s->n); /* the first one is the phase's call itself */
}

static bool enter(struct splitter *p, struct stack *s, uint32_t function, uint64_t back)
{
    uint64_t rules = p->given->rules[function];
    uint32_t inside = inside_of(s);

    if (rules && !(rules & p->opened[inside].rules)) {
        if (!grow((void **)&p->opened, p->out->n_calls + 1, &p->capacity, sizeof *p->opened))
            return false;
        inside = (uint32_t)++p->out->n_calls;
        p->opened[inside] = (struct opened){ rules, p->given->always };
    } else {
        /* The same call again, whose end was not seen: a loop through labels that look like functions. */
        uint32_t again = waiting(s, back, first_within(s, inside));

        if (again)
            s->n = again - 1;
    }
    p->opened[inside].through |= p->given->through[function];
    if (s->n == DEPTH)
        forget_oldest(s);
    s->calls[s->n++] = (struct call){ back, inside };
    return true;
}

static bool follow(struct splitter *p, struct stack *s, uint32_t block)
{
    const struct replay_phases *t = p->given;
    uint32_t function = t->functions[block], before = s->before;

    s->before = block;
    if (function == NONE) { /* a program's: nothing goes on in the kernel */
        s->n = 0;
        return true;
    }
    bool within = before != NONE && t->functions[before] == function;
    uint64_t back = before == NONE ? 0 : t->addresses[before] + t->trace->sizes[before];

    if (t->entries[block] == ENTRY)
        return enter(p, s, function, back);
    if (within)
        return true;
    uint32_t found = waiting(s, t->addresses[block], 0);

    if (found)
        s->n = found - 1;
    else if (t->entries[block] == NEAR_ENTRY)
        return enter(p, s, function, back);
    return true;
}

static bool note_change(struct splitter *p, uint64_t executed, uint64_t item, uint32_t call)
{
    struct replay_split *out = p->out;

    if (call == p->current)
        return true;
    if (!grow((void **)&out->changes, out->n_changes, &p->changes_capacity, sizeof *out->changes))
        return false;
    out->changes[out->n_changes++] = (struct replay_change){ executed, (uint32_t)item, call };
    p->current = call;
    return true;
}

static bool split(struct splitter *p)
{
    const struct replay_trace *t = p->given->trace;
    uint32_t context, last = OWN;

    for (uint64_t i = 0; i < t->n_executed; i++, last = context) {
        uint64_t start = t->starts[t->sequence[i]], end = t->starts[t->sequence[i] + 1];

        context = t->contexts[i];
        struct stack *s = &p->stacks[context];

        if (context == INTERRUPTS && last != INTERRUPTS) {
            s->n = 0;
            s->before = NONE;
        }
        for (uint64_t k = start; k < end; k++) {
            if (t->items[k] & DATA_ITEM)
                continue;
            if (!follow(p, s, t->items[k]) || !note_change(p, i, k - start, inside_of(s)))
                return false;
        }
    }
    return true;
}

/* The first rule that a call is of and went through. */
static uint8_t rule_of(struct opened opened)
{
    uint64_t fits = opened.rules & opened.through;

    return fits ? (uint8_t)__builtin_ctzll(fits) : NO_RULE;
}

int replay_split(const struct replay_phases *phases, struct replay_split *result)
{
    struct splitter *p = calloc(1, sizeof *p);

    *result = (struct replay_split){ 0 };
    if (!p)
        return NO_MEMORY;
    p->given = phases;
    p->out = result;
    for (int i = 0; i < CONTEXTS; i++)
        p->stacks[i].before = NONE;
    bool good = grow((void **)&p->opened, 0, &p->capacity, sizeof *p->opened);

    if (good) {
        p->opened[0] = (struct opened){ 0 };
        good = split(p) && (result->rules = malloc(result->n_calls + 1));
    }
    for (uint64_t i = 0; good && i <= result->n_calls; i++)
        result->rules[i] = i ? rule_of(p->opened[i]) : NO_RULE;
    free(p->opened);
    free(p);
    if (!good)
        replay_split_free(result);
    return good ? DONE : NO_MEMORY;
}

void replay_split_free(struct replay_split *result)
{
    free(result->changes);
    free(result->rules);
    *result = (struct replay_split){ 0 };
}
