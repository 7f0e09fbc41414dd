/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which frame a return ends, and which frames a call finds abandoned. */
#include "stack.h"

#define FEW_FRAMES 4u

struct frame *stack_push(struct stack *s, const struct frame *frame)
{
    if (s->n == MOST_FRAMES)
        return NULL;
    if (s->n == s->capacity) {
        s->capacity = s->capacity ? 2 * s->capacity : 32;
        s->frames = must(realloc(s->frames, s->capacity * sizeof *s->frames));
    }
    s->frames[s->n] = *frame;
    return &s->frames[s->n++];
}

/* By where the return address was; or, where that says nothing (it was in a register, or moved), by the address itself. */
uint32_t stack_returned(const struct stack *s, uint32_t floor, uint64_t slot, uint64_t target)
{
    for (uint32_t i = s->n; slot && i > floor; i--)
        if (s->frames[i - 1].slot == slot)
            return i - 1;
    for (uint32_t i = s->n; i > floor; i--) {
        if (slot && i + FEW_FRAMES <= s->n)
            break;
        if (s->frames[i - 1].back == target)
            return i - 1;
    }
    return s->n;
}

uint32_t stack_called(const struct stack *s, uint32_t floor, uint64_t slot, uint64_t most_bytes)
{
    for (uint32_t i = s->n; i > floor; i--) {
        uint64_t above = s->frames[i - 1].slot;

        if (!above || (above > slot && above - slot <= most_bytes))
            return i;
    }
    return UINT32_MAX;
}
