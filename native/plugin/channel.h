/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bytes that the guest sends by the addresses of tagged loads. */
#ifndef KDELTA_CHANNEL_H
#define KDELTA_CHANNEL_H

#include "count.h"

void channel_byte(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *unused);
/* What a mark does, at the place where it stands. */
void channel_mark(unsigned int vcpu, void *site);
/* From the host to the guest: at the mark JOB the next piece of the file is put into that mark's page. */
bool channel_open_job(const char *path);
void *channel_job_page(const struct qemu_plugin_insn *insn);
void channel_job(unsigned int vcpu, void *page);
/* Set by the translator: called once when instrumentation is first wanted. */
extern void (*channel_arm)(void);
extern void (*channel_off)(void); /* likewise, at the mark OFF: ends QEMU */
extern bool channel_counting; /* whether regions are wanted at all */

#endif
