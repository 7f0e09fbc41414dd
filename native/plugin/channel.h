/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bytes that the guest sends by the addresses of tagged loads. */
#ifndef KDELTA_CHANNEL_H
#define KDELTA_CHANNEL_H

#include "count.h"

void channel_byte(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *unused);
/* What a mark does, at the place where it stands. */
void channel_mark(unsigned int vcpu, void *site);
/* Set by the translator: called once when instrumentation is first wanted. */
extern void (*channel_arm)(void);
extern bool channel_counting; /* whether regions are wanted at all */

#endif
