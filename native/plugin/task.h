/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who executes: the measured tasks, interrupts on their time, or others. */
#ifndef KDELTA_TASK_H
#define KDELTA_TASK_H

#include "count.h"

extern unsigned task_depth; /* frames of interrupts and exceptions on the running task's stack */

void task_init(void);
enum context task_context(void);
void task_claim(void);                       /* the running task's work is the region's own */
void task_join(void);                        /* the same, in every region that it lives to see */
void task_event(uint16_t event);
void task_frame_push(const struct block *entry);
void task_frame_pop(void);
void task_back_in_user_code(void);
void task_switch_store(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *site);
void task_switch_load(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *site);
uint64_t task_ambiguous_forks(void);

#endif
