/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counting: what is executed, block by block, and from where to where a region goes. */
#ifndef KDELTA_COUNT_H
#define KDELTA_COUNT_H

#include "qemu_api.h"
#include "segment.h"
#include "task.h"

/* What is seldom to be done at a block; a CPU that may not execute anything. */
void count_rare(struct block *b, struct block *before, bool early);
_Noreturn void refuse_cpu(unsigned int vcpu);
void count_block(unsigned int vcpu, void *block);
/* Of several CPUs, the one of that index executes from now on: first 0, the one that executed first. */
void count_on_cpu(unsigned index);
void count_silently(struct block *b);
void count_user_access(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *site);
void count_device_access(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *block);

void region_begin(const char *name, size_t length, const struct site *site);
void region_iteration(const struct site *site);
void region_end(const struct site *site);

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
