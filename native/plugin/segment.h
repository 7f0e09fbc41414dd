/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What was executed, by whom, in which region and iteration. It is split into segments, each of which is of one context. */
#ifndef KDELTA_SEGMENT_H
#define KDELTA_SEGMENT_H

#include "block.h"
#include "memory.h"

/* Instructions of one iteration; a string operation counts once. */
struct iteration {
    uint64_t own_user, own_kernel, interrupts, other;
};

struct region {
    char name[256];
    uint64_t serial;             /* 0: no region is active */
    struct task *begun_by;
    bool everyone;               /* whatever task works on its time works for it */
    struct iteration *iterations, sum, whole;
    size_t n_iterations, capacity, iterations_lost;
    struct iteration by_cpu[MOST_CPUS]; /* the whole of it */
    uint64_t idle_by_cpu[MOST_CPUS];    /* of others, what the idle task executed */
    unsigned began_on;           /* the CPU */
    struct block **blocks;       /* touched in the region */
    size_t n_blocks, blocks_capacity;
};

struct counting {
    struct block *block;         /* the one under way */
    unsigned cpu;                /* that executes it: the first one to execute anything is 0 */
    bool idles;                  /* what that executes is its idle task */
    uint64_t run[2];             /* instructions so far: kernel, user; string operations once */
    uint64_t run_flushed[2];
    uint64_t returned;           /* run[0] at the end of an interrupt whose segment is still open, else 0 */
    uint32_t epoch;              /* of the segment under way */
    struct block **touched;      /* in this segment */
    size_t n_touched, touched_capacity;
    struct block **silent;       /* those that have no callback */
    size_t n_silent;
    uint64_t device_at;          /* the instruction that last accessed a device */
    bool in_stub;                /* the next entry of an interrupt or exception is the one under way */
    struct region region;
    uint64_t regions_begun;
};

extern LOCAL struct counting now;
extern struct block *before_all; /* stands in until the first block: complete, and without flags */

void segment_init(void);
/* The block may have been executed in this segment. */
void segment_touch(struct block *b);
/* Moves the running totals, less what is still to come of the block under way, into the iteration. */
void segment_account(enum context context, uint64_t rest);

/* An attempt of the group's last instruction that was not an execution; and taken back. */
void count_lose(struct block *b, unsigned group);
void count_find(struct block *b, unsigned group);

/* Ends the segment: all that was executed since the last one belongs to that context. */
void segment_close(enum context context);
/* The same in the middle of a block: its groups from `group` on come later. */
void segment_close_at(enum context context, const struct site *site);
/* The same, and the site's own group belongs to what was executed. */
void segment_close_after(enum context context, const struct site *site);

/* This block returns from an interrupt of kernel code. What is executed from then on without a callback is the task's again. */
void count_returns(const struct block *b);
/* Ends the segment of an interrupt, at the first callback after its return. */
void segment_close_interrupt(enum context resumed);

#endif
