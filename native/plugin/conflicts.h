/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of memory that one CPU writes and another one accesses, in kernel code. */
#ifndef KDELTA_CONFLICTS_H
#define KDELTA_CONFLICTS_H

#include "block.h"
#include "qemu_api.h"

extern bool conflicts_wanted;

void conflicts_want(void);
/* What the callback of that instruction's accesses is given: made once, when it is translated. */
void *conflicts_place(const struct insn *insn);
void conflicts_access(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *place);

#endif
