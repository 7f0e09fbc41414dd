/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An operation that is measured, and what the operations share. */
#ifndef BENCH_H
#define BENCH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define KIB 1024l
#define MIB (1024 * KIB)
#define PAGE_BYTES 4096l

struct operation {
    const char *name;
    unsigned iterations;    /* as many as keep all operations together below 1e9 instructions, warm-up included */
    unsigned warm_up_ms;    /* of virtual time, at least; 0 is the usual, which is right where no state outlives an iteration */
    void (*step)(void);     /* one iteration; what it needs is set up and touched before */
    bool (*setup)(long argument); /* false when this machine cannot do it: said on stderr, and left out */
    void (*ready)(void);    /* between the warm-up and the region, if an iteration uses something up */
    void (*teardown)(void);
    long argument;
    bool hidden;            /* runs only when it is named */
};

/* Each ends with an operation without name. A name that ends with '-' is a family: a number after it is the argument. */
extern const struct operation call_operations[], file_operations[], memory_operations[], process_operations[],
    wait_operations[], talk_operations[], check_operations[];

/* Ends the program with a message unless a call's result is good. */
_Noreturn void fail(const char *what);
/* An address may be negative where it has 32 bits; errors are the last page of addresses. */
static inline long must(long result)
{
    bool failed = sizeof result > 4 ? result < 0 : (unsigned long)result > -4096ul;

    if (__builtin_expect(failed, 0))
        fail("a call failed");
    return result;
}

/* An existing folder of a tmpfs with a file of 64 KiB in it. */
extern const char *const folder_path, *const file_path;
#define FILE_BYTES (64 * KIB)

/* A child that plays the other part in what is measured, and one that does not belong to it. */
pid_t partner_start(void (*serve)(void));
pid_t stranger_start(void (*work)(void));
void partner_stop(void);

/* Executes exactly so many NOPs, at most SPIN_MAX, and a constant. */
#define SPIN_MAX 4096
void spin(unsigned nops);
/* A block whose last instruction lies on two pages, on architectures that have such. */
void cross_page(void);

/* Calls by the names and the forms that architectures of 32 bits have for them. */
#ifdef SYS_fstatat64
#define SYS_newfstatat SYS_fstatat64
#define SYS_newfstat SYS_fstat64
#define OFFSET_0 0l, 0l, 0l /* an aligned pair of registers */
typedef struct stat64 facts_of_file;
#else
#define SYS_newfstat SYS_fstat
#define OFFSET_0 0l
typedef struct stat facts_of_file;
#endif

/* The vDSO's function for a call, or NULL. */
void *vdso_function(const char *name);

#endif
