/* SPDX-License-Identifier: 0BSD */
/* The marks of kdelta.h for a clock: a program that is compiled with -DKDELTA_TIMED times its regions itself, on any Linux.
 *
 * kdelta_iter() counts, and reads the clock once a batch of iterations: batches last KDELTA_BATCH_NS or more, so that reading costs
 * at most some thousandth of them. Of a region that is KDELTA_SAMPLES batches or fewer; where there would be more, neighbours become
 * one. A region without as many iterations is one sample. At its end a line of JSON goes to the file descriptor that the environment
 * variable KDELTA_TIMED_FD names; without it nothing is timed.
 *
 * The clock is the counter that the CPU has for it (TSC, CNTVCT, time), so it costs the same whatever the kernel's clock source is;
 * on ARM, where programs may not read one, clock_gettime. How long its ticks are is measured in each region. Where perf_event_open
 * gives counters, a region has those, too.
 */
#ifndef KDELTA_TIMED_H
#define KDELTA_TIMED_H

#include <errno.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define KDELTA_ARM
#define KDELTA_BEGIN
#define KDELTA_ITER
#define KDELTA_END
#define KDELTA_JOIN
#define KDELTA_MESSAGE
#define KDELTA_JOB ""
#define KDELTA_OFF
#define KDELTA_NEXT_BLOCK
#define KDELTA_MARK(mark) ((void)0)

#ifndef KDELTA_CHECK_NAME /* without kdelta.h, in a part of kdelta's own */
#define KDELTA_CHECK_NAME(name) ((void)0)
#endif

#define KDELTA_BATCH_NS 20000
#define KDELTA_SAMPLES 128 /* even */
#define KDELTA_COUNTERS 7
#define KDELTA_LONGEST_LINE 16384

struct kdelta_sample {
    uint64_t ticks, iterations;
};

struct kdelta_timing {
    const char *name;
    uint64_t left, size;        /* iterations of this batch */
    uint64_t batch_tick;        /* when it began */
    uint64_t first_tick;        /* when the region began; and a moment before, by both clocks */
    uint64_t begin_tick, begin_ns;
    uint64_t iterations;        /* of whole batches */
    uint64_t batch_ticks;       /* what a batch has to last */
    uint64_t each;              /* of what is meant by an iteration, how many kdelta_iter() is; 0: one */
    uint64_t user_us, system_us; /* of processors, before the region: of this process, and of those that it waited for */
    uint64_t overhead_ticks;    /* of reading the clock once; of a region's first and last reading it is part */
    struct kdelta_sample samples[KDELTA_SAMPLES];
    int n;
    int fd;                     /* 0: not looked for, -1: nowhere */
    int counter_fds[KDELTA_COUNTERS];
    int counter_errno;
    uint64_t counted[KDELTA_COUNTERS][3]; /* before the region: counts, and how long they were wanted, and counted */
};

/* One for all files of a program. */
__attribute__((weak)) struct kdelta_timing kdelta_timing;

static inline uint64_t kdelta_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#if defined(__x86_64__)
#define KDELTA_TICKS "tsc"
static inline uint64_t kdelta_ticks(void)
{
    uint32_t low, high;

    /* What is before it has been executed, and nothing behind it has begun. */
    __asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high) : : "memory");
    return (uint64_t)high << 32 | low;
}
#elif defined(__aarch64__)
#define KDELTA_TICKS "cntvct"
static inline uint64_t kdelta_ticks(void)
{
    uint64_t ticks;

    __asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(ticks) : : "memory");
    return ticks;
}
#elif defined(__riscv) && __riscv_xlen == 64
#define KDELTA_TICKS "time"
static inline uint64_t kdelta_ticks(void)
{
    uint64_t ticks;

    __asm__ volatile("fence\n\trdtime %0\n\tfence" : "=r"(ticks) : : "memory");
    return ticks;
}
#else
#define KDELTA_TICKS "clock_gettime"
static inline uint64_t kdelta_ticks(void)
{
    return kdelta_ns();
}
#endif

/* One moment by both clocks: of some readings that between which the least time went by, so that neither an interrupt nor code that
 * is executed for the first time makes them two moments. */
static inline void kdelta_now(uint64_t *ticks, uint64_t *ns)
{
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < 5; i++) {
        uint64_t before = kdelta_ticks(), now = kdelta_ns(), gap = kdelta_ticks() - before;

        if (gap < least)
            least = gap, *ns = now, *ticks = before + gap / 2;
    }
}

/* Cycles and instructions in user and kernel; misses in both. */
static inline void kdelta_open_counters(struct kdelta_timing *t)
{
    static const struct {
        uint32_t type;
        uint64_t config;
        int not_user, not_kernel;
    } wanted[KDELTA_COUNTERS] = {
        {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0, 1},
        {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 1, 0},
        {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 0, 1},
        {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 1, 0},
        {PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_L1I | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16, 0, 0},
        {PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_ITLB | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16, 0, 0},
        {PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, 0, 0},
    };

    for (int i = 0; i < KDELTA_COUNTERS; i++) {
        struct perf_event_attr attr;

        memset(&attr, 0, sizeof attr);
        attr.size = sizeof attr;
        attr.type = wanted[i].type;
        attr.config = wanted[i].config;
        attr.exclude_user = wanted[i].not_user != 0;
        attr.exclude_kernel = wanted[i].not_kernel != 0;
        attr.exclude_hv = 1;
        attr.disabled = 1;
        attr.inherit = 1;
        attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
        t->counter_fds[i] = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
        if (t->counter_fds[i] < 0 && !t->counter_errno)
            t->counter_errno = errno;
    }
}

/* What a counter has counted so far, and how long that was wanted, and done; whether it is there. */
static inline int kdelta_timed_counter(const struct kdelta_timing *t, int i, uint64_t value[3])
{
    return t->counter_fds[i] >= 0 && read(t->counter_fds[i], value, 3 * sizeof *value) == (ssize_t)(3 * sizeof *value);
}

static inline void kdelta_timed_setup(struct kdelta_timing *t)
{
    const char *fd = getenv("KDELTA_TIMED_FD");
    uint64_t least = UINT64_MAX, ns, now, ticks;

    t->fd = fd && *fd ? atoi(fd) : -1;
    if (t->fd < 0)
        return;
    kdelta_open_counters(t);
    for (int i = 0; i < 1000; i++) {
        uint64_t begin = kdelta_ticks(), took = kdelta_ticks() - begin;

        least = took < least ? took : least;
    }
    t->overhead_ticks = least;
    ns = kdelta_ns(), ticks = kdelta_ticks();
    while ((now = kdelta_ns()) < ns + 1000000)
        ;
    t->batch_ticks = (kdelta_ticks() - ticks) * KDELTA_BATCH_NS / (now - ns) + 1;
}

static inline void kdelta_announce(const char *name)
{
    if (!kdelta_timing.fd)
        kdelta_timed_setup(&kdelta_timing);
    kdelta_timing.name = name + (*name == '*'); /* whose work is counted does not matter here */
}

/* Processor time of this process and of those that it waited for. */
static inline void kdelta_timed_used(uint64_t *user_us, uint64_t *system_us)
{
    struct rusage of[2];

    *user_us = *system_us = 0;
    if (getrusage(RUSAGE_SELF, &of[0]) || getrusage(RUSAGE_CHILDREN, &of[1]))
        return;
    for (int i = 0; i < 2; i++) {
        *user_us += (uint64_t)of[i].ru_utime.tv_sec * 1000000 + (uint64_t)of[i].ru_utime.tv_usec;
        *system_us += (uint64_t)of[i].ru_stime.tv_sec * 1000000 + (uint64_t)of[i].ru_stime.tv_usec;
    }
}

static inline void kdelta_timed_start(void)
{
    struct kdelta_timing *t = &kdelta_timing;

    t->n = 0, t->iterations = 0, t->left = t->size = 1;
    if (t->fd < 0) {
        t->left = 0; /* which goes on to the largest number */
        return;
    }
    kdelta_timed_used(&t->user_us, &t->system_us);
    for (int i = 0; i < KDELTA_COUNTERS; i++)
        kdelta_timed_counter(t, i, t->counted[i]);
    prctl(PR_TASK_PERF_EVENTS_ENABLE);
    kdelta_now(&t->begin_tick, &t->begin_ns);
    t->batch_tick = t->first_tick = kdelta_ticks();
}

static inline void kdelta_begin(const char *name)
{
    KDELTA_CHECK_NAME(name);
    kdelta_announce(name);
    kdelta_timed_start();
}

/* The end of a batch. */
__attribute__((noinline, cold)) static void kdelta_timed_batch(void)
{
    struct kdelta_timing *t = &kdelta_timing;
    uint64_t took = kdelta_ticks() - t->batch_tick, size = t->size;

    if (t->fd < 0)
        return;
    took -= took > t->overhead_ticks ? t->overhead_ticks : took;
    t->iterations += size;
    if (took < t->batch_ticks && size < UINT64_MAX / 4) {
        t->n = 0; /* those so far were too short to be told apart from reading the clock */
        t->size *= 2;
    } else {
        if (t->n == KDELTA_SAMPLES) {
            for (int i = 0; i < KDELTA_SAMPLES / 2; i++) {
                t->samples[i].ticks = t->samples[2 * i].ticks + t->samples[2 * i + 1].ticks;
                t->samples[i].iterations = t->samples[2 * i].iterations + t->samples[2 * i + 1].iterations;
            }
            t->n = KDELTA_SAMPLES / 2;
            t->size *= 2;
        }
        t->samples[t->n].ticks = took;
        t->samples[t->n++].iterations = size;
    }
    t->left = t->size;
    t->batch_tick = kdelta_ticks();
}

static inline void kdelta_iter(void)
{
    if (!--kdelta_timing.left)
        kdelta_timed_batch();
}

/* Does what is not of the region: it is not counted, and its time is not that of a batch. */
static inline void kdelta_aside(void (*work)(void))
{
    uint64_t begin = kdelta_ticks(), took;

    prctl(PR_TASK_PERF_EVENTS_DISABLE);
    work();
    prctl(PR_TASK_PERF_EVENTS_ENABLE);
    took = kdelta_ticks() - begin;
    kdelta_timing.batch_tick += took;
    kdelta_timing.first_tick += took;
}

/* Whether a region that may be as long as one likes should go on: 32 samples and 20 ms, but not longer than 2 s. It is asked within
 * batches, so it reads no clock: what that costs depends on the kernel's clock source.
 */
static inline int kdelta_wants_more(void)
{
    const struct kdelta_timing *t = &kdelta_timing;
    uint64_t ticks = t->batch_tick - t->begin_tick;

    if (t->fd < 0)
        return 0;
    return ticks < t->batch_ticks * (2000000000 / KDELTA_BATCH_NS) &&
           (t->n < 32 || ticks < t->batch_ticks * (20000000 / KDELTA_BATCH_NS));
}

static inline size_t kdelta_timed_name(char *line, const char *name)
{
    size_t at = 0;

    for (const unsigned char *c = (const unsigned char *)name; *c && at < 6 * 255; c++)
        at += (size_t)(*c < ' ' || *c == '"' || *c == '\\' ? sprintf(line + at, "\\u%04x", *c) : sprintf(line + at, "%c", *c));
    return at;
}

static inline size_t kdelta_timed_counters(const struct kdelta_timing *t, char *line)
{
    static const char *const names[KDELTA_COUNTERS] = {
        "user_cycles", "kernel_cycles", "user_instructions", "kernel_instructions", "l1i_misses", "itlb_misses", "branch_misses",
    };
    size_t at = 0;

    for (int i = 0; i < KDELTA_COUNTERS; i++) {
        const uint64_t *before = t->counted[i];
        uint64_t value[3];

        if (kdelta_timed_counter(t, i, value))
            at += (size_t)sprintf(line + at, "%s\"%s\":[%llu,%llu,%llu]", at ? "," : "", names[i],
                                  (unsigned long long)(value[0] - before[0]), (unsigned long long)(value[1] - before[1]),
                                  (unsigned long long)(value[2] - before[2]));
    }
    return at;
}

static inline void kdelta_end(void)
{
    struct kdelta_timing *t = &kdelta_timing;
    uint64_t end_tick = kdelta_ticks(), end_ns = 0, took, iterations, user_us, system_us, each = t->each ? t->each : 1;
    static char line[KDELTA_LONGEST_LINE];
    size_t at;

    if (t->fd < 0 || !t->name)
        return;
    took = end_tick - t->first_tick;
    kdelta_now(&end_tick, &end_ns);
    prctl(PR_TASK_PERF_EVENTS_DISABLE);
    kdelta_timed_used(&user_us, &system_us);
    iterations = t->iterations + t->size - t->left;
    iterations += !iterations; /* a region without kdelta_iter() is one */
    if (!t->n) { /* no batch was long enough: all of it is one */
        t->samples[0].ticks = took > t->overhead_ticks ? took - t->overhead_ticks : 0;
        t->samples[t->n++].iterations = iterations;
    }
    at = (size_t)sprintf(line, "{\"region\":\"");
    at += kdelta_timed_name(line + at, t->name);
    at += (size_t)sprintf(line + at, "\",\"iterations\":%llu,\"ticks\":%llu,\"ns\":%llu,\"overhead_ticks\":%llu,\"samples\":[",
                          (unsigned long long)(iterations * each), (unsigned long long)(end_tick - t->begin_tick),
                          (unsigned long long)(end_ns - t->begin_ns), (unsigned long long)t->overhead_ticks);
    for (int i = 0; i < t->n; i++)
        at += (size_t)sprintf(line + at, "%s[%llu,%llu]", i ? "," : "", (unsigned long long)t->samples[i].ticks,
                              (unsigned long long)(t->samples[i].iterations * each));
    at += (size_t)sprintf(line + at, "],\"counters\":{");
    at += kdelta_timed_counters(t, line + at);
    at += (size_t)sprintf(line + at, "},\"counter_errno\":%d,\"user_us\":%llu,\"system_us\":%llu}\n", t->counter_errno,
                          (unsigned long long)(user_us - t->user_us), (unsigned long long)(system_us - t->system_us));
    for (size_t sent = 0; sent < at;) {
        ssize_t size = write(t->fd, line + sent, at - sent);

        if (size < 0 && errno != EINTR)
            break;
        sent += size > 0 ? (size_t)size : 0;
    }
    t->name = NULL, t->each = 0;
}

/* Where kdelta_iter() stands for so many iterations of the region that was announced. */
static inline void kdelta_iterations_each(uint64_t each)
{
    kdelta_timing.each = each;
}

static inline void kdelta_arm(void)
{
}

static inline void kdelta_join(void)
{
}

static inline void kdelta_send(const void *bytes, size_t size)
{
    (void)bytes, (void)size;
}

static inline void kdelta_message(const void *bytes, size_t size)
{
    (void)bytes, (void)size;
}

#endif
