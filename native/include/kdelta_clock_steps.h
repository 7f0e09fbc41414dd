/* SPDX-License-Identifier: 0BSD */
/* kdelta_clock.h for ARM, arm64 and riscv64, whose clocks may have steps of more than an instruction's nanosecond.
 *
 *            clock                                                       a step on QEMU's machines
 *   arm64    the virtual counter, CNTVCT_EL0                             1 ns, since kdelta makes its frequency 1 GHz
 *   ARM      the same, where there is one (cores with LPAE)              1 ns
 *            else the Cortex-A9's global timer, by /dev/mem              10 ns (hw/timer/a9gtimer.c)
 *            else clock_gettime; what it costs is not known: see below   the kernel's
 *   riscv64  rdtime                                                      100 ns (hw/intc/riscv_aclint.h)
 *
 * Within a step the time is found by reading the clock in a loop that takes a nanosecond more than a number of steps: each read then is
 * a nanosecond later in its step, until one is in the first nanosecond of the step after the next. Where the clock is read by a call
 * of the kernel no such loop can be made, and what starts at a moment starts up to a call later.
 */
#ifndef KDELTA_CLOCK_STEPS_H
#define KDELTA_CLOCK_STEPS_H

#include "kdelta.h"

#ifdef KDELTA_NOP

#define KDELTA_CLOCK_NEAR_NS 16384 /* before the moment, in which the time within a step is found: a hundred rounds of 101 ns at most */
#define KDELTA_CLOCK_CHUNK_NS 2048

/* Executes exactly n instructions and a few, always as many. */
static inline void kdelta_clock_execute(uintptr_t n)
{
#if defined(__arm__)
    uintptr_t odd;

    __asm__ volatile("ands %1, %0, #1\n\tbeq 1f\n\tnop\n"
                     "1: lsrs %0, %0, #1\n\tbeq 3f\n"
                     "2: subs %0, %0, #1\n\tbne 2b\n"
                     "3:" : "+l"(n), "=l"(odd) : : "cc");
#elif defined(__aarch64__)
    __asm__ volatile("tbz %0, #0, 1f\n\tnop\n"
                     "1: lsr %0, %0, #1\n\tcbz %0, 3f\n"
                     "2: sub %0, %0, #1\n\tcbnz %0, 2b\n"
                     "3:" : "+r"(n));
#elif defined(__riscv)
    uintptr_t odd;

    __asm__ volatile("andi %1, %0, 1\n\tbeqz %1, 1f\n\tnop\n"
                     "1: srli %0, %0, 1\n\tbeqz %0, 3f\n"
                     "2: addi %0, %0, -1\n\tbnez %0, 2b\n"
                     "3:" : "+r"(n), "=&r"(odd));
#endif
}

#if defined(__arm__)
#include "kdelta_clock_arm.h"
#elif defined(__aarch64__)
/* Into a register; of a 32-bit machine, into the halves of a pair. */
#define KDELTA_CLOCK_READ(whole, low, high) "mrs " whole ", cntvct_el0\n\t"

static inline int kdelta_clock_is_counter(void)
{
    return 1;
}

static inline uint64_t kdelta_clock_read(void)
{
    uint64_t steps;

    __asm__ volatile(KDELTA_CLOCK_READ("%0", "", "") : "=r"(steps));
    return steps;
}

static inline unsigned int kdelta_clock_step_ns(void)
{
    uint64_t hz;

    __asm__("mrs %0, cntfrq_el0" : "=r"(hz));
    return hz && hz < 1000000000 ? (unsigned int)(1000000000 / hz) : 1;
}

/* The number of the step that has just begun, for a clock with such steps. */
static inline uint64_t kdelta_clock_edge(unsigned int step_ns)
{
    (void)step_ns;
    return kdelta_clock_read();
}
#elif defined(__riscv)
static inline uint64_t kdelta_clock_read(void)
{
    uint64_t steps;

    __asm__ volatile("rdtime %0" : "=r"(steps));
    return steps;
}

static inline unsigned int kdelta_clock_step_ns(void)
{
    return 100;
}

static inline uint64_t kdelta_clock_edge(unsigned int step_ns)
{
    uint64_t before, now, passed;

    (void)step_ns;
    __asm__ volatile("rdtime %0\n"
                     "1: mv %1, %0\n\t"
                     "rdtime %0\n\t"
                     "sub %2, %0, %1\n\t"
                     "addi %2, %2, -2\n\t"
                     ".rept 96\n\tnop\n\t.endr\n\t"
                     "bnez %2, 1b"
                     : "=&r"(now), "=&r"(before), "=&r"(passed));
    return now;
}
#endif

static inline uint64_t kdelta_clock_now(void)
{
    return kdelta_clock_read() * kdelta_clock_step_ns();
}

/* Executes instructions until the clock, which was looked at before, is exactly there, and a few more, always as many. */
static inline void kdelta_clock_burn_until(uint64_t ns)
{
    unsigned int step_ns = kdelta_clock_step_ns();
    uint64_t now;

    while ((now = kdelta_clock_read() * step_ns) + KDELTA_CLOCK_NEAR_NS < ns)
        kdelta_clock_execute(KDELTA_CLOCK_CHUNK_NS);
    now = kdelta_clock_edge(step_ns) * step_ns;
    if (now < ns)
        kdelta_clock_execute((uintptr_t)(ns - now));
}

/* Whether programs can be started at an exact moment. */
static inline int kdelta_clock_is_exact(void)
{
#ifdef __arm__
    return kdelta_clock_kind() != KDELTA_CLOCK_CALL;
#else
    return 1;
#endif
}

/* Whether the clock tells single instructions, so that it makes sense to read it around a region. */
static inline int kdelta_clock_counts(void)
{
#ifdef KDELTA_CLOCK_READ
    return kdelta_clock_is_counter() && kdelta_clock_step_ns() == 1;
#else
    return 0;
#endif
}

/* BEGIN of a region whose name kdelta_announce() has sent. */
static inline uint64_t kdelta_clock_begin(void)
{
#ifdef KDELTA_CLOCK_READ
    if (kdelta_clock_counts()) {
        uint64_t steps;

        __asm__ volatile(KDELTA_CLOCK_READ("%0", "%Q0", "%R0") KDELTA_BEGIN : "=r"(steps) : : "memory");
        return steps;
    }
#endif
    KDELTA_MARK(KDELTA_BEGIN);
    return 0;
}

static inline uint64_t kdelta_clock_end(void)
{
#ifdef KDELTA_CLOCK_READ
    if (kdelta_clock_counts()) {
        uint64_t steps;

        __asm__ volatile(KDELTA_END KDELTA_CLOCK_READ("%0", "%Q0", "%R0") : "=r"(steps) : : "memory");
        return steps;
    }
#endif
    KDELTA_MARK(KDELTA_END);
    return 0;
}

/* The same path around nothing, with NOPs for marks. The first of them would belong to the region. */
static inline uint64_t kdelta_clock_overhead(void)
{
#ifdef KDELTA_CLOCK_READ
    if (kdelta_clock_counts()) {
        uint64_t begin, end;

        __asm__ volatile(KDELTA_CLOCK_READ("%0", "%Q0", "%R0") "nop\n\tnop\n\t" KDELTA_CLOCK_READ("%1", "%Q1", "%R1")
                         : "=&r"(begin), "=r"(end));
        return end - begin - 1; /* without that NOP */
    }
#endif
    return 0;
}

#else

static inline uint64_t kdelta_clock_now(void)
{
    return 0;
}

static inline void kdelta_clock_burn_until(uint64_t ns)
{
    (void)ns;
}

static inline int kdelta_clock_is_exact(void)
{
    return 0;
}

static inline int kdelta_clock_counts(void)
{
    return 0;
}

static inline uint64_t kdelta_clock_begin(void)
{
    KDELTA_MARK(KDELTA_BEGIN);
    return 0;
}

static inline uint64_t kdelta_clock_end(void)
{
    KDELTA_MARK(KDELTA_END);
    return 0;
}

static inline uint64_t kdelta_clock_overhead(void)
{
    return 0;
}

#endif
#endif
