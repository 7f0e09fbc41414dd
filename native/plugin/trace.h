/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sequence of executed units of a region, and of the data that they access. docs/formats.md describes what is written of it. */
#ifndef KDELTA_TRACE_H
#define KDELTA_TRACE_H

#include "piece.h"

#define TRACE_LIMIT_ITEMS (UINT64_C(64) << 20)

/* limit: of items in distinct pieces, and of pieces in the sequence. */
void trace_want(uint64_t limit);
/* The callback of a block that goes into the trace. */
void count_traced_block(unsigned int vcpu, void *block);
void trace_wait(struct block *b);

static inline void trace_block(struct block *b)
{
    if (__builtin_expect(b->waits || trace_piece.waiting, 0))
        trace_wait(b);
    else
        piece_add(b->unit, b->content);
}

#endif
