/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls are followed: each task has shadow stacks, and each block is put down to the node of the tree that is on top. */
#ifndef KDELTA_CALLS_H
#define KDELTA_CALLS_H

#include "arch.h"
#include "count.h"

struct followed;             /* what is known of a task's calls */

extern bool calls_wanted;

/* mode: "kernel" (of user code only a root is known) or "all"; false and said on stderr when it is neither. */
bool calls_want(const char *mode, uint64_t limit, const struct arch *arch);
/* What the callback of a block is given: made once, when it is translated; and whether the accesses of its last instruction are wanted. */
void *calls_place(struct block *b);
bool calls_wants_slot(const struct block *b);
void calls_access(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *unused);
void count_called_block(unsigned int vcpu, void *link);

/* Of the counting: groups after that one were not reached; the last group is none; an attempt failed (or, -1, did not); a device. */
void calls_left(struct block *b, unsigned group);
void calls_dropped(struct block *b);
void calls_lost(struct block *b, unsigned group, int times);
void calls_device(struct block *b);
/* What string operations without a callback have done belongs to the node under way. */
void calls_settle(void);
/* What was executed since the last cut belongs to that context. */
void calls_cut(enum context context);
/* In the middle of a block, whose groups from `group` on come later, and after the cut: they come now. */
void calls_leave(const struct site *site, unsigned group);
void calls_resume(const struct site *site, unsigned group);
void calls_begin(const struct site *site);
void calls_end(const struct region *region);
void calls_forget(void);

/* Of the tasks: another one goes on from that block on; is_new: whatever was known of it is of one that has ended. */
void calls_switch(struct followed **from, struct followed **to, bool is_new, const struct site *site);
/* The running task makes another one: the number of its program; and of a new task's, which is known by now (0: another one). */
uint32_t calls_forked(void);
void calls_decided(uint32_t program);
/* An exec, a signal's handler that is entered next, the return from one, or the task's end. */
void calls_event(uint16_t event);
/* An exception's or interrupt's entry; depth: of such frames. */
void calls_enter(struct block *entry, unsigned depth, bool interrupt);
/* segment: an interrupt's ends with it, and what went on since belongs to that context. */
void calls_return(unsigned depth, bool segment, enum context resumed);
/* What was entered last was an interrupt; and interrupts on this stack go on as the task's own work. */
void calls_is_interrupt(void);
void calls_no_interrupts(void);

#endif
