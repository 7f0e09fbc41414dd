/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What of a trace holds for every layout, made once.
 *
 * Blocks that follow each other in a piece, in the same function and without a gap, are one *run*: wherever the function lies, they touch
 * the same bytes in a row. Pieces become sequences of runs, and the sequence of pieces is cut into *units* that repeat.
 */
#ifndef KDELTA_PLAN_H
#define KDELTA_PLAN_H

#include "table.h"

enum { OWN, INTERRUPTS, OTHER, CONTEXTS };

#define DATA_ITEM (1u << 31)

/* The caller's arrays; native.py mirrors it. With data, `physical` says how far a block's physical address is from its virtual one,
 * and items with the bit DATA_ITEM are accesses to lines of data; else `physical` is NULL and such items are passed over.
 */
struct replay_trace {
    uint64_t n_blocks, n_pieces, n_executed, n_data;
    const uint32_t *sizes, *functions; /* of each block; function: the unit that moves as one */
    const uint64_t *offsets;           /* of each block, from its function's start */
    const uint32_t *items;
    const uint64_t *starts;
    const uint32_t *sequence;
    const uint8_t *contexts;
    const uint64_t *physical, *data_virtual, *data_physical;
};

struct run { uint64_t offset, physical; uint32_t function, bytes; };
struct pair { uint32_t from, to; };

/* Sequences of (piece << 2 | context). */
struct units {
    uint32_t *symbols;
    uint64_t *starts;   /* unit i is symbols[starts[i]..starts[i + 1]) */
    uint32_t *sequence; /* units as they were executed */
    uint64_t n_sequence;
    uint32_t n;
};

struct plan {
    struct run *runs;
    uint32_t *items;      /* runs, and accesses to data if they are wanted */
    uint64_t *starts;     /* piece i is items[starts[i]..starts[i + 1]) */
    uint32_t *executions; /* of each piece */
    uint32_t *order;      /* without data: all runs that were executed, by the last time */
    struct pair *jumps;   /* and all pairs of runs that were executed in a row, by the last time */
    uint64_t *data;       /* with data: physical addresses of all lines */
    uint64_t n_data;
    struct units units;
    uint32_t n_runs, n_pieces, n_order, n_jumps;
};

struct plan *plan_new(const struct replay_trace *trace);
void plan_free(struct plan *plan);

bool units_make(struct plan *plan, const struct replay_trace *trace);

/* Whether going from one context to the other is a branch of the program's: an interrupt's entry is none. */
static inline bool is_branch(uint32_t from, uint32_t to)
{
    return to != INTERRUPTS || from == INTERRUPTS;
}

#endif
