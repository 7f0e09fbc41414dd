/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The replay of a plan under one layout after the other; native.py mirrors the public part. */
#ifndef KDELTA_REPLAY_H
#define KDELTA_REPLAY_H

#include "plan.h"

#define EXPORTED __attribute__((visibility("default")))

enum kind { LINES, BRANCHES, HIERARCHY };
enum { L1I, L2, CACHES }; /* of a HIERARCHY; else there is one cache */
enum { L1I_MISSES, L2_CODE, L2_DATA, KINDS }; /* of misses; functions have the first two */
enum { WARM = 1, MEMO = 2, PORTABLE = 4 };
enum status { DONE, NO_MEMORY, TOO_MANY_LINES };
#define NOT_HERE UINT8_MAX

enum { TOUCHES, UNITS, SIMULATED, STATES, STATS };

enum replacement { LEAST_RECENT, ROUND_ROBIN, RANDOM }; /* replacement.h */

struct replay_cache { uint32_t sets, ways, line_shift, replacement; };

/* What is asked for. total: n_layouts x CONTEXTS; by_function: n_layouts x n_functions or NULL; stats: STATS sums. With a HIERARCHY,
 * total is n_layouts x KINDS x CONTEXTS, by_function n_layouts x 2 x n_functions. shifts: NULL, or of each function the size of its
 * lines; NOT_HERE if they do not go through this cache. A shift is 8 at least.
 */
struct replay_job {
    uint32_t kind, flags, threads;
    struct replay_cache caches[CACHES];
    uint64_t n_layouts, n_functions;
    const uint64_t *layouts; /* n_layouts x n_functions: where each function starts */
    const uint8_t *shifts;
    uint64_t *total, *by_function, *stats;
};

/* A trace's items, starts and sequence with those accesses to data alone that miss in their own first-level cache, which no layout of
 * code changes; and how many these are.
 */
struct replay_filtered {
    uint32_t *items;
    uint64_t *starts;
    uint32_t *sequence;
    uint64_t n_items, n_pieces, misses[CONTEXTS];
};

/* What the result points to is the caller's, to free with replay_filter_free. */
EXPORTED int replay_filter(const struct replay_trace *trace, const struct replay_cache *l1d, uint32_t flags,
                           struct replay_filtered *result);
EXPORTED void replay_filter_free(struct replay_filtered *result);

/* What a trace's accesses to data miss. A cache of no sets is not there: without an L2, code is passed over; without DATA_TLB, pages are.
 * Lines of the L1I, the L1D and the L2 are of one size, if there is an L2. DATA_TLB_LARGE: for pages that are larger than DATA_TLB's;
 * DATA_TLB_STORE: for all stores. stores, page_shifts: of each line of data. Of the trace, `functions` are rows, and `offsets` addresses.
 * counts: (n_rows + 1) x CONTEXTS x misses in the L1D, the L2, the TLB and the second one, of loads and of stores each.
 */
enum { DATA_L1I, DATA_L1D, DATA_L2, DATA_TLB, DATA_TLB_LARGE, DATA_TLB_STORE, DATA_TLB2, DATA_CACHES };
struct replay_data {
    uint64_t flags, n_rows;
    struct replay_cache caches[DATA_CACHES];
    const uint8_t *stores, *page_shifts;
    uint64_t *counts;
};

EXPORTED int replay_data(const struct replay_trace *trace, const struct replay_data *asked);

/* A trace whose calls are followed. Of each block: its address; its function, or NONE if that is no function of the kernel; whether it
 * is where that is called. Of each function, as bits, the rules that have it in `calls` and in `through`. always: rules without these.
 */
enum { INSIDE, ENTRY, NEAR_ENTRY }; /* NEAR_ENTRY: past a landing pad, or just near */
struct replay_phases {
    const struct replay_trace *trace;
    const uint64_t *addresses;
    const uint32_t *functions;
    const uint8_t *entries;
    const uint64_t *rules, *through;
    uint64_t always;
};

/* From this item of that executed piece on, all is in call number `call`, or 0 for none, up to the next change. */
struct replay_change { uint64_t executed; uint32_t item, call; };

#define NO_RULE UINT8_MAX

/* rules: of each call from 0 on, the rule that it fits, or NO_RULE. */
struct replay_split {
    struct replay_change *changes;
    uint8_t *rules;
    uint64_t n_changes, n_calls;
};

/* What the result points to is the caller's, to free with replay_split_free. Of the trace there need not be `functions`, `offsets`. */
EXPORTED int replay_split(const struct replay_phases *phases, struct replay_split *result);
EXPORTED void replay_split_free(struct replay_split *result);

EXPORTED struct plan *replay_plan(const struct replay_trace *trace);
EXPORTED void replay_free(struct plan *plan);
EXPORTED int replay_run(const struct plan *plan, const struct replay_job *job);

/* Misses of a function in a set, of lines that the evictor had put out; NONE: of lines that were never there. */
struct replay_collision { uint64_t misses; uint32_t set, function, evictor; };

/* Under the first layout of the job alone; total and by_function are not used. The array is *n long, the caller's to free
 * with replay_forget, and empty unless the result is DONE.
 */
EXPORTED int replay_collisions(const struct plan *plan, const struct replay_job *job,
                               struct replay_collision **all, uint64_t *n);
EXPORTED void replay_forget(struct replay_collision *all);

/* One touch of a line. `line` holds the set in its low bits; the tag above them is a number from 1 on. */
struct touch { uint32_t line, function; };

struct touches { struct touch *all; uint64_t n, capacity; };

/* Makes room for `more` touches. */
static inline bool touches_reserve(struct touches *t, uint64_t more)
{
    if (t->n + more <= t->capacity)
        return true;
    uint64_t capacity = 2 * t->capacity > t->n + more ? 2 * t->capacity : t->n + more;
    struct touch *larger = realloc(t->all, capacity * sizeof *larger);

    if (!larger)
        return false;
    t->all = larger;
    t->capacity = capacity;
    return true;
}

/* Numbers from 1 on for 64-bit values, in the order in which they are seen. */
struct numbers { struct table table; uint64_t *values; uint32_t n, capacity, last; };

uint32_t number_of(struct numbers *numbers, uint64_t value); /* 0 if memory is short */
void numbers_clear(struct numbers *numbers);
void numbers_free(struct numbers *numbers);

/* How a cache's state lies in memory. */
struct geometry {
    uint32_t sets, ways, set_bits, line_shift, replacement;
    uint32_t lanes;     /* tags that a set has room for */
    uint32_t tag_bytes;
    size_t times_at;    /* under RANDOM, where in the state is how many times something left */
    size_t state_bytes;
};

/* Makes the touches in turn and appends the function of each miss to the log. Returns the log's new end. */
typedef uint32_t *touch_fn(const struct geometry *g, void *state, const struct touch *touches, size_t n,
                           uint32_t *log);

/* Chooses the fastest one and lays out the state for it. few: tags fit in 16 bits. */
touch_fn *touch_choose(struct geometry *g, bool few, bool portable);

/* The same for policies other than LEAST_RECENT. It lays out the sets. */
touch_fn *touch_choose_other(struct geometry *g, bool few, bool portable);

/* What the state takes at most, whichever is chosen. */
size_t touch_most_state_bytes(const struct replay_cache *cache);

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
