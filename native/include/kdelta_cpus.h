/* SPDX-License-Identifier: 0BSD */
/* Tasks of a program on several CPUs that meet in user space, so that the kernel sees nothing of it. For _GNU_SOURCE. */
#ifndef KDELTA_CPUS_H
#define KDELTA_CPUS_H

#include <sched.h>

#define KDELTA_LINE_BYTES 128 /* two lines of 64 bytes: CPUs fetch them together */

/* What one task waits for, another one sets. */
struct kdelta_line {
    volatile unsigned value;
} __attribute__((aligned(KDELTA_LINE_BYTES)));

static inline unsigned kdelta_line_get(const struct kdelta_line *line)
{
    return __atomic_load_n(&line->value, __ATOMIC_ACQUIRE);
}

static inline void kdelta_line_set(struct kdelta_line *line, unsigned value)
{
    __atomic_store_n(&line->value, value, __ATOMIC_RELEASE);
}

/* Ends the turn of a CPU that the emulator executes, else it would last for up to a million instructions. On hardware it does next to
 * nothing. */
static inline void kdelta_end_turn(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Keeps the task on the CPU; as sched_setaffinity() returns. */
static inline int kdelta_pin(unsigned cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return sched_setaffinity(0, sizeof set, &set);
}

#endif
