/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls are followed: each task has shadow stacks, and each block is put down to the node of the tree that is on top. */
#ifndef KDELTA_CALLS_H
#define KDELTA_CALLS_H

#include "arch.h"
#include "count.h"

extern bool calls_wanted;

/* mode: "kernel" (of user code only a root is known) or "all"; false and said on stderr when it is neither. */
bool calls_want(const char *mode, uint64_t limit, const struct arch *arch);
/* What the callback of a block is given: made once, when it is translated; and whether the accesses of its last instruction are wanted. */
void *calls_place(struct block *b);
bool calls_wants_slot(const struct block *b);
void calls_access(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *unused);
void count_called_block(unsigned int vcpu, void *link);

#endif
