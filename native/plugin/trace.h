/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sequence of executed units of a region, kept as pieces that repeat. docs/formats.md describes what is written of it.
 *
 * The sequence is cut by its content: a hash of the last units decides where a piece ends. So what is executed again gives the pieces
 * that it gave before, each distinct piece is kept once, and the trace is a sequence of pieces.
 */
#ifndef KDELTA_TRACE_H
#define KDELTA_TRACE_H

#include "count.h"
#include "unit.h"

#define PIECE_LEAST 32u  /* units: shorter ones only where a segment ends */
#define PIECE_MOST 1024u  /* then it ends where that hash was least: in a loop, after whole passes of it */
#define PIECE_CUT 58     /* a piece goes on for 2^(64 - 58) blocks more, on average */
#define TRACE_LIMIT_ITEMS (UINT64_C(64) << 20)

struct piece {
    uint64_t hash;      /* of the last eight items: each addition moves the older ones up by a byte */
    uint32_t length;
    struct block *waiting; /* follows the unit `before` without a jump, if there is one; or NULL */
    uint32_t before;
    bool recording;     /* a region is active, and its limit not reached */
    uint32_t items[PIECE_MOST];
    uint64_t hashes[PIECE_MOST]; /* after each */
};

extern struct piece trace_piece;

/* limit: of items in distinct pieces, and of pieces in the sequence. */
void trace_want(uint64_t limit);
/* The callback of a block that goes into the trace. */
void count_traced_block(unsigned int vcpu, void *block);
void trace_full(void);
void trace_wait(struct block *b);
void trace_data(uint32_t item, uint32_t content);

/* content: a hash of what the item stands for, the same in each run. */
static inline void trace_add(uint32_t item, uint32_t content)
{
    struct piece *p = &trace_piece;

    p->hash = (p->hash << 8) + content * UINT64_C(0x9e3779b97f4a7c15);
    p->items[p->length] = item;
    p->hashes[p->length++] = p->hash;
    if (p->length >= PIECE_LEAST && (!(p->hash >> PIECE_CUT) || p->length == PIECE_MOST))
        trace_full();
}

static inline void trace_block(struct block *b)
{
    if (__builtin_expect(b->waits || trace_piece.waiting, 0))
        trace_wait(b);
    else
        trace_add(b->unit, b->content);
}

#endif
