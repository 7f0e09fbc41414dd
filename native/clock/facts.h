/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a bundle says of the machine and of the kernel that runs. */
#ifndef FACTS_H
#define FACTS_H

#include <stddef.h>

/* Passes a line of JSON on. cpu: that the workload runs on; folder: that its files are in. */
void put_facts(void (*put)(const char *bytes, size_t size), int cpu, const char *folder);

/* Of this boot; empty where the kernel has none. */
const char *boot_id(void);

#endif
