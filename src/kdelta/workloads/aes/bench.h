/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the operations of the workload aes have in common. */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "pieces.h"

/* `setup` comes before the time of rest and says by false that the operation was left out. `measure` runs the region. */
struct operation {
    const char *name;
    bool (*setup)(const char *name);
    void (*measure)(const char *name);
    void (*teardown)(void);
};

/* Each ends with a nameless one. */
extern const struct operation own_operations[], flags_operations[], kernel_operations[], socket_operations[];

/* How the program was asked to run. `start_ticks` the host has chosen: its place on the clock's grid is kept. */
struct lab {
    const char *program;
    unsigned long settle_seconds;
    uint64_t start_ticks;
    bool clock;
};

extern struct lab lab;
extern struct pieces pieces;
extern unsigned long loop_counts[2]; /* warm-up, iterations */

_Noreturn void fail(const char *what);
/* The reason why an operation is not there; the report has it. */
bool left_out(const char *name, const char *why);
void note_clock(const char *name, uint64_t ticks, uint64_t overhead);
/* Ends the program unless an operation's result is what it must be. */
void check_result(const uint8_t *wanted);

#endif
