/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The empty region, and operations by which kdelta checks its own counting. */
#include "bench.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>

#include "kdelta_clock.h"

#define STRANGER_NOPS 1000
#define MANY_PAGES 64

static unsigned spin_nops;
static volatile char *many;

static void step_nothing(void)
{
}

static bool spin_setup(long nops)
{
    spin_nops = (unsigned)nops;
    if (nops < 0 || nops > SPIN_MAX) {
        errno = ERANGE;
        fail("so many NOPs");
    }
    return true;
}

static void step_spin(void)
{
    spin(spin_nops);
}

static void step_sleep(void)
{
    struct timespec millisecond = {.tv_nsec = 1000000};

    must(syscall(SYS_nanosleep, &millisecond, NULL));
}

static void step_yield(void)
{
    must(syscall(SYS_sched_yield));
}

/* The same code at the same addresses in a process that does not belong to the region. */
static void work_in_the_background(void)
{
    for (;;) {
        spin(STRANGER_NOPS);
        step_yield();
    }
}

static bool background_setup(long unused)
{
    (void)unused;
    stranger_start(work_in_the_background);
    return true;
}

static bool many_setup(long unused)
{
    (void)unused;
    many = (char *)must((long)mmap(NULL, MANY_PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    madvise((void *)many, MANY_PAGES * PAGE_BYTES, MADV_NOHUGEPAGE);
    return true;
}

static void step_many_faults(void)
{
    for (long i = 0; i < MANY_PAGES * PAGE_BYTES; i += PAGE_BYTES)
        many[i] = 1;
    must(madvise((void *)many, MANY_PAGES * PAGE_BYTES, MADV_DONTNEED));
}

static void many_teardown(void)
{
    must(munmap((void *)many, MANY_PAGES * PAGE_BYTES));
}

static uint64_t busy_ns;

static bool busy_setup(long ms)
{
    busy_ns = (uint64_t)ms * 1000000u;
    return true;
}

static void step_busy(void)
{
    for (uint64_t until = kdelta_clock_now() + busy_ns; kdelta_clock_now() < until;)
        spin(SPIN_MAX);
}

const struct operation check_operations[] = {
    {"empty", 0, .step = step_nothing}, /* a region with nothing inside: the constant that each region has */
    {"no-op", 100, .step = step_nothing, .hidden = true}, /* and the one that each iteration has */
    {"spin-", 100, .step = step_spin, .setup = spin_setup, .hidden = true},
    {"busy-", 1, .step = step_busy, .setup = busy_setup, .hidden = true}, /* for so many ms, in user mode */
    {"sleep", 20, .step = step_sleep, .hidden = true},
    {"background", 20, .step = step_sleep, .setup = background_setup, .teardown = partner_stop, .hidden = true},
    {"fault-heavy", 50, .step = step_many_faults, .setup = many_setup, .teardown = many_teardown, .hidden = true},
    {"cross-page", 100, .step = cross_page, .hidden = true},
    {0},
};
