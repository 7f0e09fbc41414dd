/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who executes: the measured tasks, interrupts on their time, or others. */
#ifndef KDELTA_TASK_H
#define KDELTA_TASK_H

#include "qemu_api.h"
#include "segment.h"

extern LOCAL unsigned task_depth; /* frames of interrupts and exceptions on the running task's stack */

struct task;

void task_init(void);
/* The task that the CPU executes; and a CPU goes on with that one: NULL, one that is not known yet. */
struct task *task_running(void);
void task_resume(struct task *task);
enum context task_context(void);
void task_claim(void);                       /* the running task's work is the region's own */
void task_join(void);                        /* the same, in every region that it lives to see; and that of all tasks it makes */
void task_event(uint16_t event);
/* The frame that this entry makes, on the time of the block before it; and that block again, when the frame ends. */
void task_frame_push(struct block *entry, struct block *before);
struct block *task_frame_pop(void);
void task_frame_ends(const struct block *b); /* this block's last instruction returns */
void task_back_in_user_code(uint64_t vaddr);
/* A page fault after a group of user code. Where the task goes on tells whose fault it was, if `lost` was a wrong guess. */
void task_user_fault(struct block *b, unsigned group, bool lost);
void task_switch_store(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *site);
void task_switch_load(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *site);
uint64_t task_ambiguous_forks(void);
/* Calls visit with where each task that was ever switched away from keeps its stack pointer then. */
void task_each_key(void (*visit)(uint64_t key, void *data), void *data);

#endif
