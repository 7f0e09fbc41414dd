/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls that need nothing around them, and reading the clock without a call. */
#include "bench.h"

#include <sys/time.h>
#include <sys/utsname.h>
#include <time.h>

static int (*vdso_gettimeofday)(struct timeval *, void *);
static int (*vdso_clock_gettime)(clockid_t, struct timespec *);

static struct timeval day_time;
static struct timespec clock_time;
static struct utsname names;

/* Without a vDSO a program pays for the call, so that is what is measured then. */
static bool find_vdso(long unused)
{
    (void)unused;
    vdso_gettimeofday = vdso_function("gettimeofday");
    vdso_clock_gettime = vdso_function("clock_gettime");
    if (!vdso_gettimeofday)
        vdso_gettimeofday = gettimeofday;
    if (!vdso_clock_gettime)
        vdso_clock_gettime = clock_gettime;
    return true;
}

static void step_getppid(void)
{
    must(syscall(SYS_getppid));
}

static void step_gettimeofday_vdso(void)
{
    must(vdso_gettimeofday(&day_time, NULL));
}

static void step_gettimeofday(void)
{
    must(syscall(SYS_gettimeofday, &day_time, NULL));
}

static void step_clock_gettime_vdso(void)
{
    must(vdso_clock_gettime(CLOCK_MONOTONIC, &clock_time));
}

static void step_clock_gettime(void)
{
    must(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &clock_time));
}

static void step_uname(void)
{
    must(syscall(SYS_uname, &names));
}

static void step_chdir(void)
{
    must(syscall(SYS_chdir, folder_path));
}

static void leave_folder(void)
{
    must(chdir("/"));
}

static void step_sched_yield(void)
{
    must(syscall(SYS_sched_yield));
}

const struct operation call_operations[] = {
    {"getppid", 4000, .step = step_getppid},
    {"gettimeofday-vdso", 4000, .step = step_gettimeofday_vdso, .setup = find_vdso},
    {"gettimeofday-syscall", 4000, .step = step_gettimeofday},
    {"clock_gettime-vdso", 4000, .step = step_clock_gettime_vdso, .setup = find_vdso},
    {"clock_gettime-syscall", 4000, .step = step_clock_gettime},
    {"uname", 4000, .step = step_uname},
    {"chdir", 1000, .step = step_chdir, .teardown = leave_folder},
    {"sched_yield", 4000, .step = step_sched_yield},
    {0},
};
