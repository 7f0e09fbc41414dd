/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The library's functions, and what they take and give; native.py mirrors it. */
#ifndef KDELTA_REPLAY_H
#define KDELTA_REPLAY_H

#include "job.h"

#define EXPORTED __attribute__((visibility("default")))

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

#endif
