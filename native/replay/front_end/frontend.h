/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The front end of a CPU along a trace: what it predicts, fetches and fails to hide. replay/front_end/replay.py mirrors the public part.
 *
 * Blocks that follow each other without a jump are one *step*: code from where it is entered to a jump. A step is told by where it
 * lies in its function, so steps hold for every layout; their addresses are those of one.
 */
#ifndef KDELTA_FRONTEND_H
#define KDELTA_FRONTEND_H

#include "../replay.h"

enum jump { JUMP_NONE, JUMP_CONDITIONAL, JUMP_DIRECT, JUMP_CALL, JUMP_INDIRECT, JUMP_INDIRECT_CALL, JUMP_RETURN, JUMP_SYSTEM };

enum event {
    EVENT_CONDITIONAL, EVENT_INDIRECT, EVENT_RETURN, EVENT_BTB_FIRST, EVENT_BTB, EVENT_L1I, EVENT_EXPOSED, EVENT_ITLB, EVENT_WINDOWS,
    EVENT_OP_CACHE, EVENT_WAITS, EVENTS,
};

/* Tables of the conditional predictor and of the indirect one: their histories lie side by side in vectors. */
#define CONDITIONAL_TABLES 12
#define INDIRECT_TABLES 4
#define LANES (CONDITIONAL_TABLES + INDIRECT_TABLES)
#define HISTORY 1024 /* taken branches that are remembered: more than the longest history */
#define MOST_RETURNS 256
#define MOST_AHEAD 256

struct frontend_trace {
    struct replay_trace trace;
    const uint32_t *insns; /* of each block */
    const uint8_t *jumps;  /* of each block: enum jump */
};

/* Without base entries it is not there, and never wrong. */
struct frontend_predictor { uint32_t base_entries, entries, tag_bits, n_tables, histories[CONDITIONAL_TABLES]; };

/* Caches with no sets, windows of shift 0 and an empty stack of returns are not there. Times are sixteenths of cycles; ahead: windows, or
 * 0 if fetching waits for execution. EVENT_WAITS is counted if
 * delivery_time is not 0. The second TLB is for functions in small pages.
 */
struct frontend_cpu {
    struct replay_cache l1i, itlb[2], btb[2], op_cache;
    struct frontend_predictor conditional, indirect;
    uint32_t returns, window_shift, next_line, ahead, window_time, delivery_time, second_btb_time, miss_time, insn_time;
};

/* total: n_layouts x EVENTS x CONTEXTS; by_function: n_layouts x EVENTS x n_functions, or NULL. small: of each function, whether it
 * is in small pages.
 */
struct frontend_job {
    struct frontend_cpu cpu;
    uint32_t flags, threads;
    uint64_t n_layouts, n_functions;
    const uint64_t *layouts;
    const uint8_t *small;
    uint64_t *total, *by_function;
};

EXPORTED struct frontend_plan *frontend_plan(const struct frontend_trace *trace);
EXPORTED void frontend_free(struct frontend_plan *plan);
EXPORTED int frontend_run(const struct frontend_plan *plan, const struct frontend_job *job);
EXPORTED uint64_t frontend_branches(const struct frontend_plan *plan); /* executed in one pass */

struct step { uint64_t offset; uint32_t function, bytes, insns, kind; };

/* How execution goes on after a step. */
enum { STRAIGHT, TAKEN, AWAY, LAST }; /* AWAY: by no branch; LAST: the next piece says */
#define OUTCOME_SHIFT 30
#define STEP(item) ((item) & ((1u << OUTCOME_SHIFT) - 1))
#define OUTCOME(item) ((item) >> OUTCOME_SHIFT)

/* A jump's own target; from != 0 if it was seen. */
struct target { uint64_t offset; uint32_t function; int64_t votes; };

struct frontend_plan {
    struct step *steps;
    uint32_t *items;      /* steps, and how each goes on */
    uint64_t *starts;     /* piece i is items[starts[i]..starts[i + 1]) */
    uint32_t *sequence;
    uint8_t *contexts;
    uint32_t *ends;       /* of each step: a number of its last byte, which its other entries share */
    struct target *targets; /* by that number, of direct jumps */
    uint32_t *resumed;    /* at each entry of an interrupt in turn: the step that is executed when the interrupted goes on, or NONE */
    uint64_t n_executed, n_branches, n_resumed;
    uint32_t n_steps, n_pieces, n_ends;
};

/* How the execution goes on from one step to another one. */
uint32_t frontend_outcome(const struct frontend_plan *plan, uint32_t from, uint32_t to);

#endif
