/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A pair of operations that two CPUs execute at the same time, and what the pairs share. */
#ifndef PAIRS_H
#define PAIRS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "kdelta_cpus.h"

#define CPUS 2
#define PAGE_BYTES 4096l
#define PATH_BYTES 1024

/* What a pair's argument means to its setup. */
enum object { SAME, OWN };

struct pair {
    const char *name;
    bool threads;                 /* CPU 1 executes a thread of the program, and not a process of its own */
    unsigned iterations;          /* of each CPU: as many as make some 3 million instructions of both together */
    /* Steps of each CPU before the region; 0: half the iterations. Where something is freed after grace periods, or the scheduler or the
     * accounting of time settle, as many as take some ticks of the kernel's clock: 15 million instructions. */
    unsigned warm_up;
    void (*setup)(long argument); /* once, before the other task is made */
    void (*prepare)(unsigned cpu); /* in the task of each CPU, before the warm-up */
    void (*step)(unsigned cpu);   /* one iteration; it may wait for the other CPU in a system call, never in user space */
    void (*teardown)(void);       /* what is left besides descriptors and areas */
    long argument;
};

/* Each ends with a pair without name. */
extern const struct pair call_pairs[], file_pairs[], descriptor_pairs[], talk_pairs[], wait_pairs[], memory_pairs[], process_pairs[];

/* What a CPU's step works on. Each is on pages of its own, so that user space has no line in common. */
struct side {
    const char *folder, *file; /* of a tmpfs: a folder, and a file of FILE_BYTES in it */
    int fd, in, out;           /* descriptors */
    volatile char *area;       /* a page; released after the pair */
    size_t area_bytes;         /* of the mapping that begins at `area_start` */
    char *area_start;
    long offset;               /* in the file */
    struct stat facts;
    char name[PATH_BYTES];     /* path of a file that is not there */
    char buffer[PAGE_BYTES];
} __attribute__((aligned(4096)));

extern struct side sides[CPUS];
#define FILE_BYTES (64 * 1024l)
#define SMALL_FILES 8 /* in each folder, besides */

/* Ends the program with a message unless a call's result is good. */
_Noreturn void fail(const char *what);
static inline long must(long result)
{
    if (__builtin_expect(result < 0, 0))
        fail("a call failed");
    return result;
}

/* The descriptor that a call returned. It is closed after the pair. */
int opened(long result);
/* Gives the CPUs the same folder and file, or one of each CPU's own. */
void choose_files(long object);

/* run.c */
extern const struct pair *current;
void run_pair(const struct pair *pair, unsigned long warm_up, unsigned long iterations, bool last, uint64_t *ticks);
/* The thread that CPU executes, and its process. */
pid_t thread_of(unsigned cpu), process_of(unsigned cpu);
void pin(unsigned cpu);

/* folder.c */
void folders_make(const char *parent);
void folders_remove(void);

#endif
