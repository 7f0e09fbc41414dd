/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which lines the runs touch under one layout. */
#include "replay.h"

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

enum status places_make(struct places *p, const struct plan *plan, const uint64_t *layout,
                        const struct geometry *g)
{
    uint64_t known = 0;
    uint32_t tag = 0;

    if (!p->starts && !(p->starts = malloc((plan->n_runs + 1) * sizeof *p->starts)))
        return NO_MEMORY;
    numbers_clear(&p->tags);
    p->lines.n = 0;
    for (uint32_t i = 0; i < plan->n_runs; i++) {
        const struct run *run = &plan->runs[i];
        uint64_t address = layout[run->function] + run->offset;
        uint64_t line = address >> g->line_shift, last = (address + (run->bytes - 1)) >> g->line_shift;

        p->starts[i] = p->lines.n;
        if (!touches_reserve(&p->lines, last - line + 1))
            return NO_MEMORY;
        for (; line <= last; line++) {
            if (!tag || known != line >> g->set_bits) {
                known = line >> g->set_bits;
                tag = number_of(&p->tags, known);
                if (!tag)
                    return NO_MEMORY;
            }
            p->lines.all[p->lines.n++] =
                (struct touch){ tag << g->set_bits | (line & (g->sets - 1)), run->function };
        }
    }
    p->starts[plan->n_runs] = p->lines.n;
    return (uint64_t)p->tags.n << g->set_bits > UINT32_MAX ? TOO_MANY_LINES : DONE;
}

void places_free(struct places *p)
{
    numbers_free(&p->tags);
    free(p->lines.all);
    free(p->starts);
}
