/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Units by content. */
#include "unit.h"

#include "memory.h"

struct unit *units;
static uint32_t n_units, capacity;
static uint32_t *slots; /* open-addressed by content; 0 is empty */
static uint32_t n_slots;

static void fill_slots(void)
{
    free(slots);
    n_slots = capacity * 2;
    slots = zalloc(n_slots, sizeof *slots);
    for (uint32_t unit = 1; unit < n_units; unit++) {
        uint32_t i = (uint32_t)units[unit].content & (n_slots - 1);

        while (slots[i])
            i = (i + 1) & (n_slots - 1);
        slots[i] = unit;
    }
}

static uint32_t number_of(const struct unit *wanted)
{
    if (n_units == capacity) {
        capacity = capacity ? 2 * capacity : 1 << 14;
        units = must(realloc(units, capacity * sizeof *units));
        n_units = n_units ? n_units : 1;
        fill_slots();
    }
    uint32_t i = (uint32_t)wanted->content & (n_slots - 1);

    for (; slots[i]; i = (i + 1) & (n_slots - 1)) {
        const struct unit *u = &units[slots[i]];

        if (u->content == wanted->content && u->vaddr == wanted->vaddr && u->bytes == wanted->bytes)
            return slots[i];
    }
    slots[i] = n_units;
    units[n_units] = *wanted;
    return n_units++;
}

static uint32_t size_of(const struct block *b)
{
    const struct origin *o = b->origin;

    return (uint32_t)(o->groups[o->n_groups - 1].end_vaddr - o->vaddr);
}

static void append(struct unit *u, const struct block *b)
{
    uint32_t size = size_of(b);

    for (uint32_t i = 0; i < size; i++)
        u->folded = mixed(u->folded ^ b->origin->bytes[i]);
    u->bytes += size;
    u->insns += b->insns;
    u->content = mixed(u->folded ^ u->bytes);
    u->next_block = UINT32_MAX;
}

void unit_place(struct block *b)
{
    const struct origin *o = b->origin;
    struct unit u = { .vaddr = o->vaddr, .folded = o->vaddr, .host = o->host };

    append(&u, b);
    b->unit = number_of(&u);
    b->content = (uint32_t)(u.content >> 32);
    b->straight = !o->groups[o->n_groups - 1].last.jumps;
    b->waits = b->straight || o->doubtful;
}

uint32_t unit_join(uint32_t unit, const struct block *b)
{
    if (units[unit].next_block != b->id) {
        struct unit u = units[unit];

        append(&u, b);
        uint32_t joined = number_of(&u);

        units[unit].joined = joined;
        units[unit].next_block = b->origin->doubtful ? UINT32_MAX : b->id;
    }
    return units[unit].joined;
}

uint32_t unit_count(void)
{
    return n_units;
}
