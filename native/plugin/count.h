/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counting: what was executed, by whom, in which region and iteration. */
#ifndef KDELTA_COUNT_H
#define KDELTA_COUNT_H

#include "block.h"
#include "memory.h"
#include "qemu_api.h"

/* Instructions of one iteration; a string operation counts once. */
struct iteration {
    uint64_t own_user, own_kernel, interrupts, other;
};

struct region {
    char name[256];
    uint64_t serial;             /* 0: no region is active */
    bool everyone;               /* whatever task works on its time works for it */
    struct iteration *iterations, sum, whole;
    size_t n_iterations, capacity, iterations_lost;
    struct block **blocks;       /* touched in the region */
    size_t n_blocks, blocks_capacity;
};

struct counting {
    struct block *block;         /* the one under way */
    uint64_t run[2];             /* instructions so far: kernel, user; string operations once */
    uint64_t run_flushed[2];
    uint64_t returned;           /* run[0] at the end of an interrupt whose segment is still open, else 0 */
    uint32_t epoch;              /* of the segment under way */
    struct block **touched;      /* in this segment */
    size_t n_touched, touched_capacity;
    struct block **silent;       /* those that have no callback */
    size_t n_silent;
    uint64_t device_at;          /* the instruction that last accessed a device */
    struct region region;
    uint64_t regions_begun;
};

extern struct counting now;

void count_init(void);
/* What is seldom to be done at a block; a CPU that may not execute anything. */
void count_rare(struct block *b, struct block *before, bool early);
_Noreturn void refuse_cpu(unsigned int vcpu);
void count_block(unsigned int vcpu, void *block);
void count_silently(struct block *b);
void count_user_access(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *site);
void count_device_access(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *block);

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

void region_begin(const char *name, size_t length, const struct site *site);
void region_iteration(const struct site *site);
void region_end(const struct site *site);

extern unsigned task_depth; /* frames of interrupts and exceptions on the running task's stack */

static inline void count_entry(unsigned int vcpu, struct block *b)
{
    struct block *before = now.block;
    uint64_t early = before->live[0] - before->left - before->live[before->tail];
    uint64_t rare = early | b->flags | (before->flags & ENDS_FRAME) | (b->epoch ^ now.epoch) |
        (task_depth & -(unsigned)b->user) | vcpu;

    if (__builtin_expect(rare != 0, 0)) {
        if (vcpu)
            refuse_cpu(vcpu);
        count_rare(b, before, early);
    }
    now.block = b;
    now.run[b->user] += b->insns;
    b->live[0] += b->head;
}

#endif
