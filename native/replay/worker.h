/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One thread's share of a replay: it takes one layout after the other. */
#ifndef KDELTA_WORKER_H
#define KDELTA_WORKER_H

#include "places.h"

struct worker;

/* What is simulated. Functions that return bool are false if memory is short. */
struct mode {
    size_t (*most_state_bytes)(const struct replay_job *job); /* in any form that it may take */
    bool (*init)(struct worker *w);
    /* Where everything lies under a layout, and how large the state is. */
    enum status (*place)(struct worker *w, const uint64_t *layout);
    /* From the empty state to that at a pass's end, where that is LEAST_RECENT; else, or if NULL, only a whole pass tells. */
    bool (*warm)(struct worker *w);
    /* After a pass that is not measured: forgets in w->state what of its end the next one must not find. NULL: nothing. */
    void (*settle)(struct worker *w);
    /* Simulates a piece from w->state on; adds to w->misses and appends to the log. */
    bool (*piece)(struct worker *w, uint32_t piece, uint32_t context);
    void (*free)(struct worker *w);
};

extern const struct mode mode_lines, mode_branches, mode_hierarchy;

/* A piece's touches, made at its first execution under this layout. */
struct kept { uint64_t start, n; uint64_t layout; };

struct lines {
    struct places places;
    touch_fn *touch;
    struct touches kept_touches, scratch;
    struct kept *kept;
    uint64_t *latest, epoch; /* of each set: the last line of the piece at hand */
};

struct jumps {
    struct numbers tags, targets; /* addresses of the runs' last bytes, and of their first ones */
    uint32_t *target, *branch;    /* of each run: their numbers; the branch's with the set in its low bits */
    uint64_t *start;              /* of each run: its address */
};

/* A line in a hierarchy: the sets that it is in, and the number of the physical line. */
struct where { uint32_t first_set, second_set, tag; };

struct hierarchy {
    struct numbers lines;
    struct where *code, *data; /* the lines of all runs in a row; the lines of data */
    uint64_t *starts;          /* of each run in them, n_runs + 1 */
    uint64_t n_code, capacity;
};

/* A unit that was simulated from a state. */
struct edge {
    uint64_t uses, log_start;
    uint32_t from, unit, to, n_log;
    uint32_t misses[KINDS * CONTEXTS];
};

/* Units that start from the very same state again have the same misses and end in the same state. States are compared as a whole. */
struct memo {
    struct table state_table, edge_table;
    uint8_t *states;
    struct edge *edges;
    uint32_t *recent;  /* of each unit: the edge that it took last */
    uint64_t n_edges;
    size_t bytes;      /* that the states have room for */
    uint32_t n_states, most_states;
    uint32_t state;    /* where the replay stands, or NONE: then in the worker's buffer */
    uint32_t tried, found, pause, rest;
};

struct worker {
    const struct plan *plan;
    const struct replay_job *job;
    const struct mode *mode;
    struct geometry geometry; /* of the first cache; state_bytes: of all */
    uint64_t layout;          /* a number of its own for each */
    uint8_t *state;
    uint32_t *log, *log_end;  /* of each miss that functions have: its column of by_function */
    uint64_t log_capacity;
    uint64_t misses[KINDS * CONTEXTS]; /* of the unit at hand */
    uint32_t n_misses;                 /* how many of these there are */
    struct memo memo;
    struct lines lines;
    struct jumps jumps;
    struct hierarchy hierarchy;
    uint64_t stats[STATS];
};

enum status worker_init(struct worker *w, const struct plan *plan, const struct replay_job *job);
enum status worker_layout(struct worker *w, uint64_t layout);
void worker_free(struct worker *w);

/* Everything under a layout, and the caches empty. */
enum status worker_prepare(struct worker *w, const uint64_t *layout);

/* The piece's touches, without those that change nothing. NULL if memory is short. */
const struct touch *touches_of(struct worker *w, uint32_t piece, uint64_t *n);

/* Simulates one unit from w->state on; false if memory is short. */
bool simulate_unit(struct worker *w, uint32_t unit);

bool memo_init(struct memo *m, const struct plan *plan, size_t most_state_bytes);
void memo_free(struct memo *m);
/* Makes the memo empty and ready for a layout. */
void memo_start(struct worker *w);
/* All units in turn. total: NULL if the pass is not measured; then the next one may go on from where it ends. */
bool memo_walk(struct worker *w, uint64_t *total, uint64_t *by_function);
/* The state at which the walk stands into w->state, from which it goes on. */
void memo_leave(struct worker *w);
bool log_reserve(struct worker *w, uint64_t more);

#endif
