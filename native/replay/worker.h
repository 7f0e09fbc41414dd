/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One thread's share of a replay: it takes one layout after the other. */
#ifndef KDELTA_WORKER_H
#define KDELTA_WORKER_H

#include "replay.h"

/* A piece's touches, made at its first execution under this layout. */
struct kept { uint64_t start, n; uint64_t layout; };

/* A unit that was simulated from a state. */
struct edge {
    uint64_t uses, log_start;
    uint32_t from, unit, to;
    uint32_t misses[CONTEXTS];
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
    struct geometry geometry;
    touch_fn *touch;
    struct places places;
    struct touches kept_touches, scratch;
    struct kept *kept;
    uint64_t *latest, epoch; /* of each set: the last line of the piece at hand */
    uint64_t layout;         /* a number of its own for each */
    uint8_t *state;
    size_t most_state_bytes; /* in any form */
    uint32_t *log, *log_end;
    uint64_t log_capacity;
    uint64_t misses[CONTEXTS]; /* of the unit at hand */
    struct memo memo;
    struct numbers targets;    /* BRANCHES: the runs' first addresses */
    uint32_t *target, *branch; /* of each run */
    uint64_t *start;           /* of each run: its address */
    uint64_t stats[STATS];
    bool memo_allowed;
};

enum status worker_init(struct worker *w, const struct plan *plan, const struct replay_job *job);
enum status worker_layout(struct worker *w, uint64_t layout);
void worker_free(struct worker *w);

/* The places of all runs under a layout, and the caches made ready for it. */
enum status worker_prepare(struct worker *w, const uint64_t *layout);

/* The piece's touches, without those that change nothing. NULL if memory is short. */
const struct touch *touches_of(struct worker *w, uint32_t piece, uint64_t *n);

/* Simulates one unit from w->state on; false if memory is short. */
bool simulate_unit(struct worker *w, uint32_t unit);

/* Where each run starts and what its last byte's branch and its first byte's target are called. */
enum status jumps_make(struct worker *w, const uint64_t *layout);
void jumps_warm(struct worker *w);
/* False if memory is short. */
bool jumps_piece(struct worker *w, uint32_t piece, uint32_t context);
size_t jumps_state_bytes(const struct geometry *g);

bool memo_init(struct memo *m, const struct plan *plan, size_t most_state_bytes);
void memo_free(struct memo *m);
/* All units in turn. */
bool memo_walk(struct worker *w, uint64_t *total, uint64_t *by_function);
bool log_reserve(struct worker *w, uint64_t more);

#endif
