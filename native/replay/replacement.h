/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What leaves a full set of a cache.
 *
 * LEAST_RECENT: what was used least recently; ROUND_ROBIN: what came first, each set for itself; RANDOM: any, by the number of
 * times that something left any of the cache's sets, hashed. Under the first two a set is an array of tags, the most recent (or the
 * one that came last) first; under RANDOM tags stay in their ways. Tag 0 is an empty way, which is filled before anything leaves.
 */
#ifndef KDELTA_REPLACEMENT_H
#define KDELTA_REPLACEMENT_H

#include "job.h"

#include "kdelta_cache.h"

/* The way that is left the given time, each as probable. By the finalizer of MurmurHash3 (A. Appleby): nothing waits for the time before. */
static inline uint32_t random_way(uint32_t time, uint32_t ways)
{
    uint32_t x = time * 0x9e3779b9u;

    x = (x ^ (x >> 16)) * 0x85ebca6bu;
    x = (x ^ (x >> 13)) * 0xc2b2ae35u;
    return (uint32_t)((uint64_t)(x ^ (x >> 16)) * ways >> 32);
}

/* Where a tag is or, if it is in no way, the first empty one, or `ways`. */
static inline uint32_t way_of(const uint32_t *set, uint32_t ways, uint32_t tag)
{
    uint32_t way = 0;

    while (way < ways && set[way] && set[way] != tag)
        way++;
    return way;
}

/* Uses a tag. Returns what leaves for it: itself if it was there, 0 if an empty way was filled. */
static inline uint32_t cache_touch(const struct replay_cache *cache, uint32_t *set, uint32_t tag, uint32_t *times)
{
    if (cache->replacement == LEAST_RECENT)
        return kdelta_cache_touch32(set, cache->ways, tag);
    uint32_t way = way_of(set, cache->ways, tag), leaves;

    if (way < cache->ways && set[way] == tag)
        return tag;
    if (cache->replacement == ROUND_ROBIN) {
        leaves = set[cache->ways - 1];
        memmove(set + 1, set, (cache->ways - 1) * sizeof *set);
        set[0] = tag;
        return leaves;
    }
    if (way == cache->ways)
        way = random_way(++*times, cache->ways);
    leaves = set[way];
    set[way] = tag;
    return leaves;
}

#endif
