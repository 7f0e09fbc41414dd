/* SPDX-License-Identifier: 0BSD */
/* The guest's clock around a region: the time-stamp counter right before its BEGIN mark and right after its END mark.
 *
 * Under a clock that counts instructions,
 *     end - begin = instructions of the region, string iterations included, + kdelta_clock_overhead() + time spent idle.
 * They are told to the host by a message of the type "region-clock" with lines of "REGION TICKS OVERHEAD".
 */
#ifndef KDELTA_CLOCK_H
#define KDELTA_CLOCK_H

#include "kdelta.h"

#ifdef __x86_64__
#define KDELTA_READ_CLOCK "rdtsc\n\tshl $32, %%rdx\n\tor %%rdx, %%rax\n\t"

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
#else
static inline uint64_t kdelta_clock_begin(void)
{
    return KDELTA_MARK(KDELTA_BEGIN), 0;
}

static inline uint64_t kdelta_clock_end(void)
{
    return KDELTA_MARK(KDELTA_END), 0;
}

static inline uint64_t kdelta_clock_overhead(void)
{
    return 0;
}
#endif

#endif
