/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What leaves a full set of a cache.
 *
 * LEAST_RECENT: what was used least recently; ROUND_ROBIN: what came first, each set for itself; RANDOM: any, by a generator that the
 * cache has for all its sets, stepped whenever something leaves. Under the first two a set is an array of tags, the most recent (or the
 * one that came last) first; under RANDOM tags stay in their ways. Tag 0 is an empty way, which is filled before anything leaves.
 */
#ifndef KDELTA_REPLACEMENT_H
#define KDELTA_REPLACEMENT_H

#include "replay.h"

#include "kdelta_cache.h"

/* xorshift32. G. Marsaglia: Xorshift RNGs, Journal of Statistical Software 8 (2003). A state is kept xor SEED, so that it begins as 0. */
#define SEED 0x9e3779b9u

static inline uint32_t next_random(uint32_t state)
{
    uint32_t x = state ^ SEED;

    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return x ^ SEED;
}

/* A way by the generator's state, each as probable. */
static inline uint32_t random_way(uint32_t state, uint32_t ways)
{
    return (uint32_t)((uint64_t)(state ^ SEED) * ways >> 32);
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
static inline uint32_t cache_touch(const struct replay_cache *cache, uint32_t *set, uint32_t tag, uint32_t *random)
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
    if (way == cache->ways) {
        *random = next_random(*random);
        way = random_way(*random, cache->ways);
    }
    leaves = set[way];
    set[way] = tag;
    return leaves;
}

#endif
