/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls without an object: what two CPUs share of the tasks, the clock and the scheduler. */
#include "pairs.h"

#include <sched.h>
#include <sys/resource.h>
#include <time.h>

static void step_getppid(unsigned cpu)
{
    (void)cpu;
    must(syscall(SYS_getppid));
}

static void step_clock_gettime(unsigned cpu)
{
    must(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, sides[cpu].buffer));
}

static void step_yield(unsigned cpu)
{
    (void)cpu;
    must(syscall(SYS_sched_yield));
}

static void step_getrusage(unsigned cpu)
{
    must(syscall(SYS_getrusage, RUSAGE_SELF, sides[cpu].buffer));
}

const struct pair call_pairs[] = {
    {"getppid-processes", .iterations = 4000, .step = step_getppid},
    {"getppid-threads", .threads = true, .iterations = 4000, .step = step_getppid},
    {"clock_gettime-processes", .iterations = 3000, .step = step_clock_gettime},
    {"sched_yield-processes", .iterations = 1500, .step = step_yield},
    {"getrusage-threads", .threads = true, .iterations = 1000, .warm_up = 6000, .step = step_getrusage},
    {0},
};
