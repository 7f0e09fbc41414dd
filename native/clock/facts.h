/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a bundle says of the machine and of the kernel that runs. */
#ifndef FACTS_H
#define FACTS_H

#include <stddef.h>

/* Passes a line of JSON on.
 * workload  what is timed is called that
 * path      of its program; NULL where it is part of this one
 * arguments of a program that is no workload, whose arguments are operations; NULL: none
 * folder    that files of it are in
 * cpu       that it runs on; -1: any */
void put_facts(void (*put)(const char *bytes, size_t size), const char *workload, const char *path, char *const *arguments,
               const char *folder, int cpu);

/* Of this boot; empty where the kernel has none. */
const char *boot_id(void);

/* Which CPUs are online now; empty where the kernel does not say. */
const char *online_cpus(void);

#endif
