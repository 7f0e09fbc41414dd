/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One set of a cache that evicts what was least recently used: the rule that the replay and the plugin share.
 *
 * A set is an array of tags, the most recently used one first; tag 0 stands for an empty way, and no line has it. A cache is `sets`
 * such arrays of `ways` tags, one after the other: line L belongs to set L % sets, and its tag is anything that tells the lines of one
 * set apart (L + 1, say). With that order, the array is the whole state: there are no clocks or bits besides it.
 */
#ifndef KDELTA_CACHE_H
#define KDELTA_CACHE_H

#include <stdint.h>

/* Defines NAME: makes `tag` the most recent of its set and returns what leaves for it: `tag` itself if it was there (a hit), 0 if an
 * empty way was filled, else the tag that was evicted.
 */
#define KDELTA_CACHE_TOUCH(NAME, TYPE) \
    static inline TYPE NAME(TYPE *set, uint32_t ways, TYPE tag) \
    { \
        TYPE moving = tag; \
\
        for (uint32_t way = 0; way < ways; way++) { \
            TYPE here = set[way]; \
\
            set[way] = moving; \
            moving = here; \
            if (here == tag) \
                break; \
        } \
        return moving; \
    }

KDELTA_CACHE_TOUCH(kdelta_cache_touch16, uint16_t)
KDELTA_CACHE_TOUCH(kdelta_cache_touch32, uint32_t)

#endif
