/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Times the passes of a program by the machine's clock, or has them traced: the same passes, on the same inputs, from one binary.
 *
 *     static void pass(unsigned int k) { ... }           // the k-th pass: always the same work for one k
 *     int main(int argc, char **argv)
 *     {
 *         return timing_main(argc, argv, 8, pass);        // after its set-up, which may look at timing_arguments()
 *     }
 *
 *     PROGRAM trace ARGUMENTS...                          the region "pass", whose iterations are the passes
 *     PROGRAM time CORE ROUNDS WARM ARGUMENTS...          pinned to a core: WARM rounds of all passes, then ROUNDS that are timed
 *
 * It works with a C library and without one. What it prints when it times, in ticks of the clock:
 *
 *     clock NAME EMPTY CYCLES      what reading it takes, and the length of the reference loop in cycles of the core
 *     W R T0 R T1 R ... R W        of each round: the passes, the reference loop (R) around each, the width loop (W) around all
 *     done
 *
 * The reference loop is a chain of additions, each of which waits for the one before: a cycle each, on any core. The second operand
 * is a register, since cores that rename well make an addition of an immediate disappear. So it tells the frequency, and nothing
 * else. The width loop has as many additions that do not wait for each other: it takes longer when another thread of the core takes a
 * share of it, which the reference loop does not feel. */
#ifndef KDELTA_CALIBRATION_TIMING_H
#define KDELTA_CALIBRATION_TIMING_H

#include "kdelta.h"
#include "system.h"

enum { TIMING_MOST_TICKS = 1 << 15, TIMING_MOST_PASSES = 64, REFERENCE_CHAIN = 256, REFERENCE_TURNS = 40, REFERENCE_MIN_TICKS = 4000,
       WIDTH_TURNS = 100 };

static uint32_t timing_ticks[TIMING_MOST_TICKS];

#if defined(__x86_64__)
#define TIMING_ADD(to, other) "add " other ", " to "\n\t"
#define TIMING_TURN(n)        "dec " n "\n\tjnz 1b"
#else
#define TIMING_ADD(to, other) "add " to ", " to ", " other "\n\t"
#if defined(__riscv)
#define TIMING_TURN(n) "addi " n ", " n ", -1\n\tbnez " n ", 1b"
#else
#define TIMING_TURN(n) "subs " n ", " n ", #1\n\tbne 1b"
#endif
#endif

/* Executes the chain `turns` times: in a section that no order of functions touches. */
__attribute__((noinline, section(".text"))) static uint64_t reference_ticks(unsigned long turns)
{
    unsigned long sum = 0, one = 1;
    uint64_t begin = clock_ticks();

    __asm__ volatile(".p2align 6\n1:\n\t.rept 256\n\t" TIMING_ADD("%0", "%2") ".endr\n\t" TIMING_TURN("%1")
                     : "+r"(sum), "+r"(turns)
                     : "r"(one)
                     : "cc");
    return clock_ticks() - begin;
}

__attribute__((noinline, section(".text"))) static uint64_t width_ticks(void)
{
    unsigned long a = 0, b = 0, c = 0, d = 0, one = 1, turns = WIDTH_TURNS;
    uint64_t begin = clock_ticks();

    __asm__ volatile(".p2align 6\n1:\n\t.rept 64\n\t" TIMING_ADD("%0", "%5") TIMING_ADD("%1", "%5") TIMING_ADD("%2", "%5")
                     TIMING_ADD("%3", "%5") ".endr\n\t" TIMING_TURN("%4")
                     : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(turns)
                     : "r"(one)
                     : "cc");
    return clock_ticks() - begin;
}

/* What a program's own arguments are; `*n` of them. */
static inline char **timing_arguments(int argc, char **argv, int *n)
{
    int own = argc > 1 && same_text(argv[1], "time") ? 5 : 2;

    *n = argc > own ? argc - own : 0;
    return argv + (argc > own ? own : argc);
}

static inline uint64_t timing_empty(void)
{
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < 64; i++) {
        uint64_t begin = clock_ticks(), took = clock_ticks() - begin;

        least = took < least ? took : least;
    }
    return least;
}

static inline void timing_trace(unsigned int passes, void (*pass)(unsigned int))
{
    for (unsigned int k = 0; k < passes; k++)
        pass(k);
    kdelta_begin("pass");
    for (unsigned int k = 0; k < passes; k++) {
        pass(k);
        kdelta_iter();
    }
    kdelta_end();
}

static inline uint32_t *timing_round(uint32_t *ticks, unsigned int passes, void (*pass)(unsigned int), unsigned long turns)
{
    *ticks++ = (uint32_t)width_ticks();
    *ticks++ = (uint32_t)reference_ticks(turns);
    for (unsigned int k = 0; k < passes; k++) {
        uint64_t before = clock_ticks();

        pass(k);
        *ticks++ = (uint32_t)(clock_ticks() - before);
        *ticks++ = (uint32_t)reference_ticks(turns);
    }
    *ticks++ = (uint32_t)width_ticks();
    return ticks;
}

static inline void timing_time(unsigned int passes, void (*pass)(unsigned int), unsigned int rounds, unsigned int warm)
{
    unsigned long turns = REFERENCE_TURNS;
    uint32_t *ticks = timing_ticks;

    for (unsigned int i = 0; i < warm; i++)
        timing_round(timing_ticks, passes, pass, turns);
    while (reference_ticks(turns) < REFERENCE_MIN_TICKS && turns < REFERENCE_TURNS * 64)
        turns *= 2;
    for (unsigned int i = 0; i < rounds; i++)
        ticks = timing_round(ticks, passes, pass, turns);
    say("clock " CLOCK_NAME " ");
    say_number(timing_empty());
    say(" ");
    say_number(turns * REFERENCE_CHAIN);
    say("\n");
    for (uint32_t *at = timing_ticks; at != ticks;) {
        for (unsigned int i = 0; i < 2 * passes + 3; i++) {
            say_number(*at++);
            say(i < 2 * passes + 2 ? " " : "\n");
        }
    }
    say("done\n");
    say_all();
}

/* Exit code: 0, or 2 for wrong arguments, 3 for a core that it may not use. */
static inline int timing_main(int argc, char **argv, unsigned int passes, void (*pass)(unsigned int))
{
    long rounds, warm;

    if (argc >= 2 && same_text(argv[1], "trace")) {
        timing_trace(passes, pass);
        return 0;
    }
    if (argc < 5 || !same_text(argv[1], "time"))
        return 2;
    rounds = number_of(argv[3]), warm = number_of(argv[4]);
    if (rounds < 1 || warm < 0 || passes > TIMING_MOST_PASSES || rounds > TIMING_MOST_TICKS ||
        (unsigned int)rounds * (2 * passes + 3) > TIMING_MOST_TICKS)
        return 2;
    if (system_pin(number_of(argv[2])) < 0)
        return 3;
    for (size_t i = 0; i < TIMING_MOST_TICKS; i += 256)
        ((volatile uint32_t *)timing_ticks)[i] = 0;
    timing_time(passes, pass, (unsigned int)rounds, (unsigned int)warm);
    return 0;
}

#endif
