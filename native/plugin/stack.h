/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shadow stacks: the calls that are under way. */
#ifndef KDELTA_STACK_H
#define KDELTA_STACK_H

#include "tree.h"

enum ending { ENDS_OTHERWISE, ENDS_CALL, ENDS_RETURN };

/* What the callback of a block is given. */
struct link {
    struct block *block;
    struct cell *cell;       /* of the block as part of the node that it was last executed in; while `key` is that of the callback */
    uint64_t key;
    uint8_t ends;            /* enum ending */
    bool user, settles;      /* settles: something is counted in it, or after it, without a callback */
    struct block *silent;    /* the rest of the string operation that it ends with */
    struct block *before;    /* a string operation that goes on here when it is done */
    size_t n_silent;         /* how many there were when that was looked for */
};

/* A call or return whose target has not been reached. */
struct pending {
    const struct link *from; /* NULL: none */
    uint64_t slot;           /* where the return address was stored, or read from; 0 where it is in a register */
};

struct frame {
    struct way way;          /* its parent is the frame below */
    uint64_t back, slot;
    uint32_t node;           /* by the numbers that its stack's serial says */
    uint32_t more;           /* handlers of signals that follow this one */
    struct pending pending;  /* what was under way when an interrupt came */
    bool found;              /* of an entry by a system call: its function has begun */
};

struct stack {
    struct frame *frames;    /* the oldest first */
    uint32_t n, capacity;
    uint64_t serial;         /* of the numbers that its frames' nodes are by */
};

#define MOST_FRAMES (1u << 16)

static inline struct frame *stack_top(const struct stack *s)
{
    return s->n ? &s->frames[s->n - 1] : NULL;
}

/* NULL when there are too many. */
struct frame *stack_push(struct stack *s, const struct frame *frame);
/* How many frames are left when that return has been made; s->n when it is none of these frames'. From `floor` on. */
uint32_t stack_returned(const struct stack *s, uint32_t floor, uint64_t slot, uint64_t target);
/* How many are left of a stack when a call is made whose return address is there; UINT32_MAX when that is on no such stack. */
uint32_t stack_called(const struct stack *s, uint32_t floor, uint64_t slot, uint64_t most_bytes);

#endif
