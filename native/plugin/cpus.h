/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which of the guest's CPUs executes. */
#ifndef KDELTA_CPUS_H
#define KDELTA_CPUS_H

#define MOST_CPUS 64u

struct block;

extern unsigned n_cpus;

/* How many the guest has. Ends QEMU if this host cannot distinguish them. */
void cpus_set(unsigned n);
/* A callback of blocks, in place of `callback`, that has the CPU which executes taken up first. */
void (*cpus_callback(void (*callback)(unsigned int vcpu, void *data)))(unsigned int vcpu, void *data);

#endif
