/* SPDX-License-Identifier: 0BSD */
/* The guest's clock, under which an executed instruction takes 1 ns: read around a region, right before its BEGIN mark and right after
 * its END mark; and executing instructions until a moment.
 *
 *     end - begin = instructions of the region, string iterations included, + kdelta_clock_overhead() + time spent idle.
 *
 * They are told to the host by a message of the type "region-clock" with lines of "REGION TICKS OVERHEAD"; of a machine whose clock
 * has no steps as small as that (kdelta_clock_counts() is false) there is none.
 */
#ifndef KDELTA_CLOCK_H
#define KDELTA_CLOCK_H

#include <time.h>

#include "kdelta.h"

#ifdef KDELTA_TIMED
static inline uint64_t kdelta_clock_now(void)
{
    return kdelta_ns();
}

/* BEGIN of a region whose name kdelta_announce() has sent. */
static inline uint64_t kdelta_clock_begin(void)
{
    kdelta_timed_start();
    return 0;
}

static inline uint64_t kdelta_clock_end(void)
{
    kdelta_end();
    return 0;
}

static inline uint64_t kdelta_clock_overhead(void)
{
    return 0;
}

static inline void kdelta_clock_burn_until(uint64_t ns)
{
    while (kdelta_ns() < ns)
        ;
}

static inline int kdelta_clock_is_exact(void)
{
    return 0;
}

static inline int kdelta_clock_counts(void)
{
    return 0;
}

#elif defined(__x86_64__)
#define KDELTA_READ_CLOCK "rdtsc\n\tshl $32, %%rdx\n\tor %%rdx, %%rax\n\t"

static inline uint64_t kdelta_clock_now(void)
{
    return __builtin_ia32_rdtsc();
}

/* BEGIN of a region whose name kdelta_announce() has sent. */
static inline uint64_t kdelta_clock_begin(void)
{
    uint64_t ticks;

    __asm__ volatile(KDELTA_READ_CLOCK KDELTA_BEGIN : "=a"(ticks) : : "rdx", "memory");
    return ticks;
}

static inline uint64_t kdelta_clock_end(void)
{
    uint64_t ticks;

    __asm__ volatile(KDELTA_END KDELTA_READ_CLOCK : "=a"(ticks) : : "rdx", "memory");
    return ticks;
}

/* The same path around nothing, with NOPs for marks. The first of them would belong to the region. */
static inline uint64_t kdelta_clock_overhead(void)
{
    uint64_t begin, end;

    __asm__ volatile(KDELTA_READ_CLOCK "mov %%rax, %0" : "=r"(begin) : : "rax", "rdx");
    __asm__ volatile(KDELTA_READ_CLOCK "mov %%rax, %0" : "=r"(begin) : : "rax", "rdx");
    __asm__ volatile(KDELTA_READ_CLOCK "nop\n\tnop\n\tmov %%rax, %%rcx\n\t" KDELTA_READ_CLOCK
                     : "=a"(end), "=c"(begin) : : "rdx");
    return end - begin - 2; /* without that NOP and the move */
}
/* Executes instructions until the time-stamp counter is exactly there, when each of them is a tick of it: NOPs in large and
 * then in small steps, and at last a slide of NOPs that is entered at the right distance from its end. */
static inline void kdelta_clock_burn_until(uint64_t tick)
{
    __asm__ volatile("1: rdtsc\n\t"
                     "shl $32, %%rdx\n\t"
                     "or %%rdx, %%rax\n\t"
                     "mov %0, %%rdx\n\t"
                     "sub %%rax, %%rdx\n\t"
                     "jbe 3f\n\t"
                     "cmp $64, %%rdx\n\t"
                     "jb 2f\n\t"
                     "cmp $2048, %%rdx\n\t"
                     "jb 1b\n\t"
                     ".fill 1024, 1, 0x90\n\t"
                     "jmp 1b\n"
                     "2: lea 3f(%%rip), %%rax\n\t"
                     "sub %%rdx, %%rax\n\t"
                     "jmp *%%rax\n\t"
                     ".fill 64, 1, 0x90\n"
                     "3:"
                     :
                     : "r"(tick)
                     : "rax", "rdx", "cc");
}
static inline int kdelta_clock_is_exact(void)
{
    return 1;
}

static inline int kdelta_clock_counts(void)
{
    return 1;
}

#else
#include "kdelta_clock_steps.h"
#endif

/* How exact a start has to be. QEMU's main loop can take a guest for idle that has just begun to work or has not yet accounted for
 * its work, and then lets the clock jump by some microseconds too far. What starts on a grid after a time of rest does not notice. */
#define KDELTA_CLOCK_GRID_TICKS (1ull << 18)

/* Executes NOPs to the next point of the grid, plus an offset. */
static inline void kdelta_clock_align(uint64_t offset_ticks)
{
    uint64_t now = kdelta_clock_now(), grid = KDELTA_CLOCK_GRID_TICKS;

    kdelta_clock_burn_until((now / grid + 1) * grid + offset_ticks % grid);
}

/* Much longer than what one kernel executes more than another before a region: in both, regions begin at the same moments, so that
 * ticks, averages over time and who runs next are the same in them. */
#define KDELTA_CLOCK_REST_TICKS (1ull << 31)
#define KDELTA_CLOCK_REST_LAST_TICKS (1ull << 20) /* which are executed */

/* Sleeps for a time, and then until the clock is at a multiple of that, plus an offset. */
static inline void kdelta_clock_rest(const struct timespec *time, uint64_t offset_ticks)
{
    uint64_t now = kdelta_clock_now(), grid = KDELTA_CLOCK_REST_TICKS, ns = (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec;
    uint64_t until = ((now + ns) / grid + 1) * grid + offset_ticks % grid, sleep_ns = until - now - KDELTA_CLOCK_REST_LAST_TICKS;
    struct timespec rest = {(time_t)(sleep_ns / 1000000000), (long)(sleep_ns % 1000000000)};

    nanosleep(&rest, NULL);
    kdelta_clock_burn_until(until);
}

#endif
