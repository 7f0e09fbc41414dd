/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which lines the runs touch under one layout. */
#include "places.h"

static bool same_value(const void *owner, uint32_t id, const void *key)
{
    return ((const struct numbers *)owner)->values[id] == *(const uint64_t *)key;
}

uint32_t number_of(struct numbers *s, uint64_t value)
{
    uint64_t hash = mix(value);
    uint32_t id = table_get(&s->table, hash, same_value, s, &value);

    if (id != NONE)
        return id + 1;
    if (s->n == s->capacity) {
        uint32_t capacity = s->capacity ? 2 * s->capacity : 1024;
        uint64_t *larger = realloc(s->values, capacity * sizeof *larger);

        if (!larger)
            return 0;
        s->values = larger;
        s->capacity = capacity;
    }
    if (!table_put(&s->table, hash, s->n))
        return 0;
    s->values[s->n++] = value;
    return s->n;
}

void numbers_clear(struct numbers *s)
{
    table_clear(&s->table);
    s->n = 0;
}

void numbers_free(struct numbers *s)
{
    table_free(&s->table);
    free(s->values);
}

/* The line's number in this cache; 0 if memory is short. */
static uint32_t line_number(struct places *p, const struct geometry *g, uint64_t line, uint64_t size)
{
    uint64_t tag = line >> g->set_bits | size;

    if (!p->tag || p->value != tag) {
        p->value = tag;
        p->tag = number_of(&p->tags, tag);
    }
    return p->tag ? p->tag << g->set_bits | (line & (g->sets - 1)) : 0;
}

static bool add_more(struct places *p, uint32_t line)
{
    if (p->n_more == p->capacity) {
        uint64_t capacity = p->capacity ? 2 * p->capacity : 1024;
        uint32_t *larger = realloc(p->more, capacity * sizeof *larger);

        if (!larger)
            return false;
        p->more = larger;
        p->capacity = capacity;
    }
    p->more[p->n_more++] = line;
    return line;
}

static bool place(struct places *p, struct place *place, const struct geometry *g, uint64_t address,
                  uint32_t bytes)
{
    uint32_t shift = p->shifts ? p->shifts[place->function] : g->line_shift;
    uint64_t size = p->shifts ? (uint64_t)shift << 56 : 0; /* the same page of another size is another one */

    place->more = (uint32_t)p->n_more;
    place->lines[0] = place->lines[1] = 0;
    if (p->shifts && shift == NOT_HERE)
        return true;
    uint64_t first = address >> shift, last = (address + (bytes - 1)) >> shift;

    place->lines[0] = line_number(p, g, first, size);
    place->lines[1] = first == last ? place->lines[0] : line_number(p, g, first + 1, size);
    for (uint64_t line = first + 2; line <= last; line++)
        if (!add_more(p, line_number(p, g, line, size)))
            return false;
    return place->lines[0] && place->lines[1];
}

enum status places_make(struct places *p, const struct plan *plan, const uint64_t *layout,
                        const struct geometry *g)
{
    if (!p->all && !(p->all = malloc((plan->n_runs + 1) * sizeof *p->all)))
        return NO_MEMORY;
    numbers_clear(&p->tags);
    p->tag = 0;
    p->n_more = 0;
    for (uint32_t i = 0; i < plan->n_runs; i++) {
        const struct run *run = &plan->runs[i];

        p->all[i].function = run->function;
        if (!place(p, &p->all[i], g, layout[run->function] + run->offset, run->bytes))
            return NO_MEMORY;
        if ((uint64_t)p->tags.n << g->set_bits > UINT32_MAX || p->n_more > UINT32_MAX)
            return TOO_MANY_LINES;
    }
    p->all[plan->n_runs].more = (uint32_t)p->n_more;
    return DONE;
}

void places_free(struct places *p)
{
    numbers_free(&p->tags);
    free(p->all);
    free(p->more);
}
