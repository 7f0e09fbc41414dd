/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An instruction cache that is simulated while the guest runs: the misses of the kernel as it is linked, whatever a region's length.
 *
 * A block is fetched whole, line by line, from its virtual address; silent blocks are not. So a trace, replayed, fetches the same.
 */
#ifndef KDELTA_ICACHE_H
#define KDELTA_ICACHE_H

#include "count.h"
#include "kdelta_cache.h"

/* Of one block, by its id. */
struct fetch {
    uint64_t line;        /* the first; 0 of a block that is not known yet */
    uint32_t lines;
};

struct icache {
    uint32_t sets, ways, line_bytes;
    uint64_t *tags;       /* ways of one set next to each other; NULL: nothing is simulated */
    struct fetch *fetches;
    size_t recent_bytes, block_starts; /* of the list of misses: its end, and where the block under way starts in it */
};

extern struct icache icache;

/* geometry: SETSxWAYSxBYTES; false and said on stderr when that is none. */
bool icache_want(const char *geometry);
/* The callback of a block that goes into the trace, if there is one, and is fetched from the cache. */
void count_fetched_block(unsigned int vcpu, void *block);
void icache_missed(const struct block *b, uint64_t line);

static inline void icache_fetch(const struct block *b)
{
    const struct fetch *f = &icache.fetches[b->id];

    icache.block_starts = icache.recent_bytes;
    for (uint64_t line = f->line, end = line + f->lines; line < end; line++) {
        uint64_t *set = icache.tags + (line & (icache.sets - 1)) * icache.ways;

        if (*set != line + 1 && kdelta_cache_touch64(set, icache.ways, line + 1) != line + 1)
            icache_missed(b, line);
    }
}

#endif
