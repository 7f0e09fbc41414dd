/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the generated programs share: in which order functions are called, and by which words they decide and choose their data.
 *
 * Arguments: FLOW (fixed, random, mixed, loop), WORDS (constant, random or strided) and BYTES of data. They change contents of tables
 * and of variables only: a pass executes the same instructions but for conditionals that depend on the words. */
#ifndef KDELTA_CALIBRATION_CALLS_H
#define KDELTA_CALIBRATION_CALLS_H

#include "data.h"
#include "start.h"
#include "timing.h"

enum { REPEATS = 8, STRIDE = 64 };

/* Of the passes that go before, too: what is drawn is drawn on and on, so that no pass is like another. */
static uint16_t order[(BEFORE + 1) * PASSES][CALLS];
static uint64_t word_factor, word_step; /* the words are the upper half of a linear congruence */
char *data;
uint32_t data_mask;
static volatile word result;

/* For what calls the functions: no order of functions touches it. It is executed between all of them, so where it lies in its lines would
 * make more of a difference than all else: when the operands of a mispredicted call are fetched. */
#define PLACED_ONCE __attribute__((noinline, section(".text"), aligned(64)))

static inline uint32_t draw(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    return *state ^= *state << 5;
}

/* Below n, by a multiplication. */
static inline uint32_t draw_below(uint32_t *state, uint32_t n)
{
    return (uint32_t)((uint64_t)draw(state) * n >> 32);
}

static inline void set_order(char flow)
{
    static uint16_t fixed[CALLED];
    uint32_t state = 2463534242u, next = 0, drawn = 0;

    for (uint32_t i = 0; i < CALLED; i++)
        fixed[i] = (uint16_t)i;
    for (uint32_t i = CALLED - 1; i; i--) {
        uint32_t j = draw_below(&state, i + 1);
        uint16_t other = fixed[i];

        fixed[i] = fixed[j], fixed[j] = other;
    }
    for (uint32_t i = 0; i < (BEFORE + 1) * PASSES * CALLS; i++) {
        uint32_t chance = draw(&state);

        if (flow == 'r' || (flow == 'm' && chance >> 30 == 0) || (flow == 'l' && i % REPEATS == 0))
            drawn = draw_below(&state, CALLED);
        else if (flow != 'l')
            drawn = fixed[next];
        next = next + 1 == CALLED ? 0 : next + 1;
        order[i / CALLS][i % CALLS] = (uint16_t)drawn;
    }
}

static inline int set_data(const char *words, long bytes)
{
    word *filled;
    uint32_t state = 88172645u;

    word_factor = words[0] == 'r' ? 6364136223846793005u : 1;
    word_step = words[0] == 'r' ? 1442695040888963407u : words[0] == 's' ? (uint64_t)STRIDE << 32 : 0;
    if (bytes < 4096 || bytes & (bytes - 1))
        return -1;
    if (!(data = system_pages((size_t)bytes, 1)))
        return -1;
    data_mask = (uint32_t)bytes - 64; /* whole lines */
    filled = (word *)data;
    for (size_t i = 0; i < (size_t)bytes / sizeof *filled; i++)
        filled[i] = draw(&state);
    return 0;
}

static inline int calls_main(int argc, char **argv, void (*pass)(unsigned int))
{
    int n;
    char **own = timing_arguments(argc, argv, &n);

    if (n != 3 || set_data(own[1], number_of(own[2])) < 0)
        return 2;
    set_order(own[0][0]);
    return timing_main_once(argc, argv, PASSES, BEFORE, pass);
}

/* The words of a pass are those of its number. */
#define WORDS_OF(k) uint64_t words = word_factor == 1 ? (uint64_t)(k) * CALLS * word_step : ((uint64_t)(k) + 1) * 0x9e3779b97f4a7c15u
#define NEXT_WORD ((uint32_t)((words = words * word_factor + word_step) >> 32))

#endif
