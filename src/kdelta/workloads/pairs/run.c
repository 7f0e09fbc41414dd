/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two tasks, one on each CPU, that meet in user space, and then both execute their steps. */
#include "pairs.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "kdelta_clock.h"

#define MOST_OPENED 64

/* Shared between processes. Nothing is set back within a pair. */
struct meeting {
    struct kdelta_line prepared[CPUS]; /* its objects are there */
    struct kdelta_line ready;          /* CPU 1 has warmed up */
    struct kdelta_line go;             /* the region has begun */
    struct kdelta_line done;           /* CPU 1 has executed its steps */
    struct kdelta_line over;           /* the region has ended */
    struct kdelta_line steps[CPUS];    /* that it has executed, the warm-up's included */
    struct kdelta_line threads[CPUS], processes[CPUS];
};

struct side sides[CPUS];
const struct pair *current;

static struct meeting *meeting;
static unsigned long warm_up_steps, steps;
static int descriptors[MOST_OPENED];
static unsigned n_descriptors;

int opened(long result)
{
    unsigned index = __atomic_fetch_add(&n_descriptors, 1, __ATOMIC_RELAXED);

    must(result);
    if (index >= MOST_OPENED) {
        errno = EMFILE;
        fail("too many descriptors");
    }
    return descriptors[index] = (int)result;
}

static void release_all(void)
{
    while (n_descriptors)
        close(descriptors[--n_descriptors]);
    for (unsigned cpu = 0; cpu < CPUS; cpu++)
        if (sides[cpu].area_bytes)
            munmap(sides[cpu].area_start, sides[cpu].area_bytes);
    memset(sides, 0, sizeof sides);
}

pid_t thread_of(unsigned cpu)
{
    return (pid_t)meeting->threads[cpu].value;
}

pid_t process_of(unsigned cpu)
{
    return (pid_t)meeting->processes[cpu].value;
}

void pin(unsigned cpu)
{
    must(kdelta_pin(cpu));
}

static void set(struct kdelta_line *line)
{
    kdelta_line_set(line, 1);
}

static void await_in_user_space(const struct kdelta_line *line)
{
    while (!kdelta_line_get(line))
        kdelta_end_turn();
}

/* A step and the other CPU's turn, so that both execute their steps alternately where they don't wait for each other anyway. A turn that
 * a timer has ended early has put one of them ahead; it gives another turn away. */
static inline void do_step(unsigned cpu)
{
    current->step(cpu);
    meeting->steps[cpu].value++;
    kdelta_end_turn();
    if (meeting->steps[cpu].value > meeting->steps[!cpu].value)
        kdelta_end_turn();
}

/* Both have made their objects. The other task may still have to leave this CPU. */
static void prepare(unsigned cpu)
{
    meeting->threads[cpu].value = (unsigned)syscall(SYS_gettid);
    meeting->processes[cpu].value = (unsigned)getpid();
    if (current->prepare)
        current->prepare(cpu);
    set(&meeting->prepared[cpu]);
    while (!kdelta_line_get(&meeting->prepared[!cpu]))
        sched_yield();
}

static void warm_up(unsigned cpu)
{
    for (unsigned long n = warm_up_steps; n; n--)
        do_step(cpu);
}

/* All that CPU 1 executes. It enters the kernel by nothing but its steps while the region is open. */
static void work_on_1(void)
{
    pin(1);
    kdelta_join();
    prepare(1);
    warm_up(1);
    set(&meeting->ready);
    await_in_user_space(&meeting->go);
    for (unsigned long n = steps; n; n--)
        do_step(1);
    set(&meeting->done);
    await_in_user_space(&meeting->over);
}

static void *thread_main(void *nothing)
{
    work_on_1();
    return nothing;
}

static pid_t process_start(void)
{
    pid_t parent = getpid(), child = (pid_t)must(fork());

    if (child)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    work_on_1();
    _exit(0);
}

/* Returns the ticks of the clock from the region's begin to its end. */
static __attribute__((noinline)) uint64_t region(void)
{
    uint64_t begin;

    kdelta_announce(current->name);
    kdelta_end_turn(); /* so that the next one seldom ends between the reading of the clock and the region's begin */
    begin = kdelta_clock_begin();
    set(&meeting->go);
    kdelta_end_turn(); /* CPU 1 begins, so that its steps are in as many iterations */
    for (unsigned long n = steps; n; n--) {
        do_step(0);
        kdelta_iter();
    }
    await_in_user_space(&meeting->done);
    return kdelta_clock_end() - begin;
}

static void meeting_make(void)
{
    if (!meeting) {
        meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (meeting == MAP_FAILED)
            fail("no shared memory");
    }
    memset(meeting, 0, sizeof *meeting);
}

void run_pair(const struct pair *pair, unsigned long warm_up_wanted, unsigned long iterations, bool last, uint64_t *ticks)
{
    pthread_t thread;
    pid_t child = 0;

    current = pair;
    warm_up_steps = warm_up_wanted;
    steps = iterations;
    meeting_make();
    if (pair->setup)
        pair->setup(pair->argument);
    kdelta_arm();
    kdelta_join(); /* as the other task does, so that it is no matter which of them made a task that starts */
    if (pair->threads)
        must(-pthread_create(&thread, NULL, thread_main, NULL));
    else
        child = process_start();
    prepare(0);
    warm_up(0);
    await_in_user_space(&meeting->ready);
    *ticks = region();
    set(&meeting->over);
    if (last) /* the guest ends, and nothing has to be put back */
        return;
    if (pair->threads)
        must(-pthread_join(thread, NULL));
    else
        must(waitpid(child, NULL, 0));
    if (pair->teardown)
        pair->teardown();
    release_all();
    current = NULL;
}
