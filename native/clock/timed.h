/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs a program that times itself, and prints what it says as lines of JSON: one of the machine and the kernel, one of each region,
 * and one with a hash over all bytes before it. */
#ifndef TIMED_H
#define TIMED_H

#include <stdbool.h>
#include <stdint.h>

/* workload  what is timed is called that
 * path      of the program; NULL where it is part of this one
 * arguments of a program that is no workload, whose arguments are operations; NULL: none
 * folder    that files of it are in
 * cpu       that it runs on; -1: any
 * whole     it is a region besides its own, from exec to exit
 * seconds   after which it is ended; 0: never
 * start     becomes the program; words: its own */
struct timed {
    const char *workload, *path, *folder;
    char *const *arguments;
    int cpu;
    bool whole;
    uint64_t seconds;
    void (*start)(void *words);
    void *words;
};

/* Returns the status of the program, as of wait(); -1 where its time was over. */
int timed_run(const struct timed *timed);

/* Ends this process with an error; `errno` says which. */
_Noreturn void timed_fail(const char *what);

#endif
