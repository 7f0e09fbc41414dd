/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Small pieces of zeroed memory that are given back all at once. */
#ifndef KDELTA_ARENA_H
#define KDELTA_ARENA_H

#include "memory.h"

#define ARENA_PIECE_BYTES ((size_t)1 << 20)

struct arena_piece {
    struct arena_piece *next;
    uint8_t bytes[];
};

struct arena {
    struct arena_piece *pieces; /* the newest first */
    size_t used;
};

static inline void *arena_take(struct arena *a, size_t size)
{
    size = (size + 7) & ~(size_t)7;
    if (!a->pieces || a->used + size > ARENA_PIECE_BYTES) {
        struct arena_piece *piece = zalloc(1, sizeof *piece + ARENA_PIECE_BYTES);

        piece->next = a->pieces;
        a->pieces = piece;
        a->used = 0;
    }
    a->used += size;
    return a->pieces->bytes + a->used - size;
}

static inline void arena_free(struct arena *a)
{
    while (a->pieces) {
        struct arena_piece *next = a->pieces->next;

        free(a->pieces);
        a->pieces = next;
    }
    a->used = 0;
}

#endif
