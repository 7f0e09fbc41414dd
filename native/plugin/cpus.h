/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which of the guest's CPUs executes. */
#ifndef KDELTA_CPUS_H
#define KDELTA_CPUS_H

#define MOST_CPUS 64u

extern unsigned n_cpus;

/* How many the guest has. Ends QEMU if this host cannot distinguish them. */
void cpus_set(unsigned n);
typedef void cpus_block_callback(unsigned int vcpu, void *data);

/* A callback of blocks in place of that one. It calls `changed` first when another CPU than before executes: with its index, the first
 * one's being 0.
 */
cpus_block_callback *cpus_callback(cpus_block_callback *callback, void (*changed)(unsigned index));

#endif
