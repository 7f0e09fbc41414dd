/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A trace's items, kept as pieces that repeat. docs/formats.md describes what is written of them.
 *
 * The sequence is cut by its content: a hash of the last items decides where a piece ends. So what is executed again gives the pieces
 * that it gave before, each distinct piece is kept once, and the trace is a sequence of pieces.
 */
#ifndef KDELTA_PIECE_H
#define KDELTA_PIECE_H

#include "block.h"
#include "memory.h"

#define PIECE_LEAST 32u  /* items: shorter ones only where a segment ends */
#define PIECE_MOST 1024u  /* then it ends where that hash was least: in a loop, after whole passes of it */
#define PIECE_CUT 58     /* a piece goes on for 2^(64 - 58) items more, on average */
#define NONE UINT32_MAX

/* The piece that is open. */
struct piece {
    uint64_t hash;      /* of the last eight items: each addition moves the older ones up by a byte */
    uint32_t length;
    struct block *waiting; /* follows the unit `before` without a jump, if there is one; or NULL */
    uint32_t before;
    bool recording;     /* a region is active, and its limit not reached */
    uint32_t items[PIECE_MOST];
    uint64_t hashes[PIECE_MOST]; /* after each */
};

extern LOCAL struct piece trace_piece;

/* A vector of u32. */
struct numbers {
    uint32_t *data;
    size_t size, capacity;
};

/* What is known of a distinct piece. */
struct kept {
    uint64_t start, hash;
    uint32_t length;
    uint32_t next; /* the piece that followed it last: a guess that spares the hash */
};

struct pieces {
    uint64_t limit;         /* of items in distinct pieces, and of pieces in the sequence */
    struct numbers items, sequence;
    struct kept *kept;
    size_t n_kept, kept_capacity;
    uint32_t *slots;        /* open-addressed: piece, or NONE */
    size_t n_slots;
    uint32_t last;          /* the piece before */
    bool truncated;
};

extern struct pieces pieces;

void pieces_forget(void);
/* The limit is reached: nothing more is recorded. */
void pieces_stop(void);
void piece_full(void);
/* The open piece ends here, however short it is. */
void piece_end(void);

/* content: a hash of what the item stands for, the same in each run. */
static inline void piece_add(uint32_t item, uint32_t content)
{
    struct piece *p = &trace_piece;

    p->hash = (p->hash << 8) + content * UINT64_C(0x9e3779b97f4a7c15);
    p->items[p->length] = item;
    p->hashes[p->length++] = p->hash;
    if (p->length >= PIECE_LEAST && (!(p->hash >> PIECE_CUT) || p->length == PIECE_MOST))
        piece_full();
}

#endif
