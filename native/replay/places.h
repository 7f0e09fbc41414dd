/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where everything lies under one layout. */
#ifndef KDELTA_PLACES_H
#define KDELTA_PLACES_H

#include "touch.h"

/* Numbers from 1 on for 64-bit values, in the order in which they are seen. */
struct numbers { struct table table; uint64_t *values; uint32_t n, capacity, last; };

uint32_t number_of(struct numbers *numbers, uint64_t value); /* 0 if memory is short */
void numbers_clear(struct numbers *numbers);
void numbers_free(struct numbers *numbers);

/* Where a run lies under one layout: its first line, and its second or again its first one; 0 if it is not in this cache. */
struct place { uint32_t lines[2], function, more; };

struct places {
    struct numbers tags;
    struct place *all;    /* of each run, and one that says where `more` ends */
    uint32_t *more;       /* the third and later lines: of place i, more[i.more]..more[(i + 1).more) */
    uint64_t n_more, capacity;
    const uint8_t *shifts;
    uint64_t value;       /* the tag that was looked up last, */
    uint32_t tag;         /* and its number or 0 */
};

enum status places_make(struct places *p, const struct plan *plan, const uint64_t *layout,
                        const struct geometry *g);
void places_free(struct places *p);

#endif
