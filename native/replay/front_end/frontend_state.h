/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A front end while a trace goes through it under one layout. */
#ifndef KDELTA_FRONTEND_STATE_H
#define KDELTA_FRONTEND_STATE_H

#include "frontend.h"
#include "../replacement.h"

/* A line, a page or a window of code: where it is in its cache, and the low bits of its number. Of pages: which TLB instead. */
struct place_in { uint32_t set, tag, low; };

/* A step under a layout. Its lines, pages and windows of decoded operations lie in a row from `first` on. */
struct spot {
    uint32_t start, back;            /* low bits of its first address, and of what follows it */
    uint32_t branch_mix, start_mix;  /* hashes of its last byte's address, and of its first one's */
    uint32_t first, n_lines, n_pages, n_ops;
    uint32_t window, windows;        /* the first aligned window, and how many there are */
    uint32_t time;                   /* of its instructions */
    uint32_t branch_tag, branch_sets[2];
    uint32_t function, kind;
};

/* stride: tags that a set has room for. one_vector: a set is a vector, and evicts what was least recently used. */
struct held { const struct replay_cache *cache; uint32_t *tags, times, stride; bool one_vector; };

typedef uint32_t vector __attribute__((vector_size(32)));
#define VECTORS (LANES / 8)

/* sum: of each table, the branches of its history, as a polynomial of their hashes. leaving: what the oldest is multiplied by when it
 * leaves. (The rule by Karp and Rabin.)
 */
struct history {
    vector sum[VECTORS], leaving[VECTORS], length[VECTORS], offset[VECTORS];
    uint32_t ring[HISTORY], at;
};

/* Where a branch is in the tagged tables, and what an entry of its own looks like. */
struct lookup { vector slot[VECTORS], want[VECTORS]; };

#define TAG_BITS 0x1ffffu /* of an entry: 16 of the tag and one that says it is there */
#define VALID 0x10000u
#define COUNTER 17        /* 0 to 7: taken from 4 on */
#define USEFUL 20         /* 0 to 3 */
#define AGE_AFTER (1u << 18)

struct conditional { uint8_t *base; uint32_t *entries, use_other, chance, since; };

/* Of tagged entries: confidence instead of the counter. */
struct indirect { uint32_t *base, *entries, *targets, chance; };

struct front {
    const struct frontend_plan *plan;
    const struct frontend_job *job;
    const struct frontend_cpu *cpu;
    struct held l1i, itlb[2], btb[2], op_cache;
    struct history history;
    struct conditional conditional;
    struct indirect indirect;
    uint32_t returns[MOST_RETURNS], top;
    uint64_t fetched, executed;          /* times */
    uint64_t queue[MOST_AHEAD];          /* when each of the last windows was executed, */
    uint32_t oldest;                     /* of which this is the oldest one */
    uint64_t supplied, consumed;         /* fetched and executed, if no line ever missed */
    uint64_t consumed_at[MOST_AHEAD];    /* as the queue */
    uint32_t waited;                     /* sixteenths of a cycle that were not counted yet */
    uint32_t last_line, last_low, last_page, last_op, last_window;
    uint64_t last_asked;
    bool straight;                       /* the step goes on where the one before it ended */
    uint32_t line_mask, window_mask;     /* windows in a line, less one; lines in a window, less one */
    struct spot *spots;
    struct place_in *places;
    struct numbers lines, pages, windows_of_ops, branches;
    uint64_t n_places, capacity;
    uint64_t *total, *by_function;       /* of the layout at hand; by_function may be NULL */
};

enum status front_init(struct front *f, const struct frontend_plan *plan, const struct frontend_job *job);
void front_free(struct front *f);
/* Where all lies under a layout, and everything empty. */
enum status front_place(struct front *f, const uint64_t *layout);
/* One pass over the trace; what happens is added up. */
void front_walk_portable(struct front *f);
void front_walk_avx2(struct front *f);

/* The finalizer of MurmurHash3 (A. Appleby). */
static inline uint32_t mix32(uint32_t x)
{
    x = (x ^ (x >> 16)) * 0x85ebca6bu;
    x = (x ^ (x >> 13)) * 0xc2b2ae35u;
    return x ^ (x >> 16);
}

#define ALWAYS __attribute__((always_inline)) /* into the one loop */
#define FACTOR 0x2c9277b5u /* of the polynomial */
#define SPREAD 0x9e3779b1u /* a history and an address to a place and a tag */

#endif
