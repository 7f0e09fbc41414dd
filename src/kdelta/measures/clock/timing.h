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
 * A pass that is executed again and again has its branches learned, in each process differently. Where no pass is to be like another,
 * main() ends in timing_main_once(argc, argv, 8, BEFORE, pass): passes 0 to 8 * BEFORE - 1 go before, and the next 8 are timed, once; they
 * are the passes of the region, too. ROUNDS is 1 then, and WARM is BEFORE at most.
 *
 * It works with a C library and without one. What it prints when it times, in ticks of the clock:
 *
 *     clock NAME EMPTY CYCLES      what reading it takes, and the length of the reference loop in cycles of the core
 *     W R T R W  W R T R W ...     of each round: its passes (T), each between two reference loops (R) and two width loops (W)
 *     done
 *
 * The reference loop is a chain of additions, each of which waits for the one before: a cycle each, on any core. The second operand
 * is a register, since cores that rename well make an addition of an immediate disappear. So it tells the frequency, and nothing
 * else. The width loop has as many additions that do not wait for each other: it takes longer when another thread of the core takes a
 * share of it, which the reference loop does not feel. That comes and goes within less than a millisecond, so it is looked for besides each
 * pass: a pass whose loops say that the core was shared tells nothing, and the next one waits until it no longer is, for as many probes of
 * some 10 microseconds as the environment's PATIENCE says. What the loop takes on a core that is alone is in the
 * file `level`, if there is one: WIDTH REFERENCE TURNS, the ticks of both loops and the turns of the reference loop. A process that sees
 * it take less writes that. */
#ifndef KDELTA_TIMED_TIMING_H
#define KDELTA_TIMED_TIMING_H

#include "kdelta.h"
#include "system.h"

enum { TIMING_MOST_TICKS = 1 << 15, TIMING_MOST_PASSES = 64, TIMING_NUMBERS = 5, REFERENCE_CHAIN = 256, REFERENCE_TURNS = 40, REFERENCE_MIN_TICKS = 4000,
       WIDTH_TURNS = 100, LEVEL_PROBES = 32, LEVEL_NTH = 6, ALONE_PERCENT = 104, LOWER_PERCENT = 98 };

/* What is timed: rounds of `passes` passes, always the same ones, or, where `before` is not 0, one round, with other passes before it. */
struct timed_work {
    void (*pass)(unsigned int);
    unsigned int passes, before;
};

/* What the width loop and the reference loop took, one after the other. */
struct width {
    uint64_t width, reference;
};

static uint32_t timing_ticks[TIMING_MOST_TICKS];
static unsigned long timing_turns = REFERENCE_TURNS; /* more where the clock is slow */
static struct width timing_level;                    /* of a core that is alone */
static unsigned long timing_patience;

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

/* The number of the first pass that is timed. */
static inline unsigned int first_timed(const struct timed_work *work)
{
    return work->before * work->passes;
}

/* The passes that go before what is timed, without looking at the clock: of so many rounds. */
static inline void warm_up(const struct timed_work *work, unsigned int rounds)
{
    for (unsigned int i = 0; i < rounds; i++)
        for (unsigned int k = 0; k < work->passes; k++)
            work->pass(work->before ? (work->before - rounds + i) * work->passes + k : k);
}

static inline void timing_trace(const struct timed_work *work)
{
    warm_up(work, work->before ? work->before : 1);
    kdelta_begin("pass");
    for (unsigned int k = 0; k < work->passes; k++) {
        work->pass(first_timed(work) + k);
        kdelta_iter();
    }
    kdelta_end();
}

/* Whether a is less than `percent` of b, in cycles. */
static inline int is_narrower(struct width a, struct width b, unsigned int percent)
{
    return a.width * b.reference * 100 < b.width * a.reference * percent;
}

static inline struct width probe_width(void)
{
    struct width one;
    uint64_t before = reference_ticks(timing_turns), after;

    one.width = width_ticks();
    after = reference_ticks(timing_turns);
    one.reference = before < after ? before : after;
    /* What was interrupted, or had its frequency changed, says nothing: it counts as very wide. */
    if (before * 100 > after * 101 || after * 100 > before * 101)
        one.width = 1000 * one.reference;
    return one;
}

/* Low among some probes, but not the least, which may be a slip. */
static inline struct width probed_level(void)
{
    struct width least[LEVEL_NTH];

    for (int i = 0; i < LEVEL_PROBES; i++) {
        struct width one = probe_width();

        for (int j = 0; j < LEVEL_NTH; j++)
            if (i <= j || is_narrower(one, least[j], 100)) {
                struct width other = least[j];

                least[j] = one, one = other;
            }
    }
    return least[LEVEL_NTH - 1];
}

static inline const char *next_number(const char *at, uint64_t *n)
{
    for (*n = 0; *at == ' '; at++)
        ;
    for (; *at >= '0' && *at <= '9'; at++)
        *n = *n * 10 + (uint64_t)(*at - '0');
    return at;
}

static inline void read_level(void)
{
    char text[80] = "";
    long file = system_call(NR_OPENAT, AT_THIS_FOLDER, (long)"level", 0, 0, 0, 0);
    uint64_t turns = 0;

    if (file < 0)
        return;
    system_call(NR_READ, file, (long)text, sizeof text - 1, 0, 0, 0);
    system_call(NR_CLOSE, file, 0, 0, 0, 0, 0);
    next_number(next_number(next_number(text, &timing_level.width), &timing_level.reference), &turns);
    if (turns)
        timing_turns = (unsigned long)turns;
}

static inline void say_level(struct width level)
{
    say_number(level.width);
    say(" ");
    say_number(level.reference);
    say(" ");
    say_number(timing_turns);
    say("\n");
}

/* Into the file, if it is there. */
static inline void write_level(void)
{
    long file = system_call(NR_OPENAT, AT_THIS_FOLDER, (long)"level", 01001 /* O_WRONLY | O_TRUNC */, 0, 0, 0);

    if (file < 0)
        return;
    system_text_size = 0;
    say_level(timing_level);
    system_call(NR_WRITE, file, (long)system_text, (long)system_text_size, 0, 0, 0);
    system_call(NR_CLOSE, file, 0, 0, 0, 0, 0);
    system_text_size = 0;
}

/* How often the reference loop has to turn for the clock to see it, and the level, as the file has them or as they seem to be now. */
static inline void find_level(void)
{
    struct width now;

    read_level();
    if (!timing_level.reference)
        while (reference_ticks(timing_turns) < REFERENCE_MIN_TICKS && timing_turns < REFERENCE_TURNS * 64)
            timing_turns *= 2;
    now = probed_level();
    if (timing_level.reference && !is_narrower(now, timing_level, LOWER_PERCENT))
        return;
    timing_level = now;
    write_level();
}

/* Whether the core is ours alone, in two probes one after the other; waits for that as long as there is patience. */
static inline void wait_alone(void)
{
    for (int alone = 0; alone < 2 && timing_patience; timing_patience--)
        alone = is_narrower(probe_width(), timing_level, ALONE_PERCENT) ? alone + 1 : 0;
}

/* What a pass leaves in caches and predictors, by one that is not timed: of those that went before, or the one before it. */
static inline void refill(const struct timed_work *work, unsigned int k)
{
    if (work->before)
        work->pass(first_timed(work) - work->passes + k);
    else
        work->pass(k ? k - 1 : work->passes - 1);
}

static inline int is_alone(struct width one)
{
    return is_narrower(one, timing_level, ALONE_PERCENT);
}

/* Waits until the core is ours, and then fills caches and predictors again, which the other thread had a share of, too. */
static inline struct width settle(const struct timed_work *work, unsigned int k)
{
    struct width one;

    do {
        wait_alone();
        refill(work, k);
        one.width = width_ticks();
        one.reference = reference_ticks(timing_turns);
        if (timing_patience)
            timing_patience--;
    } while (timing_patience && !is_alone(one));
    return one;
}

/* Passes, each with a width loop and a reference loop before it and after it. Where the core was shared, the next one waits. */
static inline uint32_t *timing_round(uint32_t *ticks, const struct timed_work *work)
{
    struct width last = settle(work, 0);

    for (unsigned int k = 0; k < work->passes; k++) {
        uint64_t before;

        if (timing_patience && !is_alone(last))
            last = settle(work, k);
        *ticks++ = (uint32_t)last.width;
        *ticks++ = (uint32_t)last.reference;
        before = clock_ticks();
        work->pass(first_timed(work) + k);
        *ticks++ = (uint32_t)(clock_ticks() - before);
        last.reference = reference_ticks(timing_turns);
        last.width = width_ticks();
        *ticks++ = (uint32_t)last.reference;
        *ticks++ = (uint32_t)last.width;
    }
    return ticks;
}

static inline unsigned long patience_of(char **environment)
{
    static const char name[] = "PATIENCE=";

    for (; *environment; environment++) {
        size_t i = 0;

        while (name[i] && (*environment)[i] == name[i])
            i++;
        if (!name[i] && number_of(*environment + i) > 0)
            return (unsigned long)number_of(*environment + i);
    }
    return 0;
}

static inline void timing_time(const struct timed_work *work, unsigned int rounds, unsigned int warm)
{
    uint32_t *ticks = timing_ticks;
    unsigned int numbers = TIMING_NUMBERS * work->passes;

    find_level();
    warm_up(work, warm);
    for (unsigned int i = 0; i < rounds; i++)
        ticks = timing_round(ticks, work);
    say("clock " CLOCK_NAME " ");
    say_number(timing_empty());
    say(" ");
    say_number(timing_turns * REFERENCE_CHAIN);
    say("\n");
    for (uint32_t *at = timing_ticks; at != ticks;) {
        for (unsigned int i = 0; i < numbers; i++) {
            say_number(*at++);
            say(i < numbers - 1 ? " " : "\n");
        }
    }
    say("done\n");
    say_all();
}

/* Exit code: 0, or 2 for wrong arguments, 3 for a core that it may not use. */
static inline int timing_main_once(int argc, char **argv, unsigned int passes, unsigned int before, void (*pass)(unsigned int))
{
    const struct timed_work work = {pass, passes, before};
    long rounds, warm;

    if (argc >= 2 && same_text(argv[1], "trace")) {
        timing_trace(&work);
        return 0;
    }
    if (argc < 5 || !same_text(argv[1], "time"))
        return 2;
    rounds = number_of(argv[3]), warm = number_of(argv[4]);
    if (before && (rounds != 1 || warm > (long)before))
        return 2;
    if (rounds < 1 || warm < 0 || passes > TIMING_MOST_PASSES || rounds > TIMING_MOST_TICKS ||
        (unsigned int)rounds * TIMING_NUMBERS * passes > TIMING_MOST_TICKS)
        return 2;
    if (system_pin(number_of(argv[2])) < 0)
        return 3;
    for (size_t i = 0; i < TIMING_MOST_TICKS; i += 256)
        ((volatile uint32_t *)timing_ticks)[i] = 0;
    timing_patience = patience_of(argv + argc + 1);
    timing_time(&work, (unsigned int)rounds, (unsigned int)warm);
    return 0;
}

static inline int timing_main(int argc, char **argv, unsigned int passes, void (*pass)(unsigned int))
{
    return timing_main_once(argc, argv, passes, 0, pass);
}

#endif
