/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Regions that meet other regions, and the tasks that are made, end or change in them. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "corners.h"

/* A region that begins inside another ends it; an END too many is nothing. */
static void nested(void)
{
    uint64_t outer = kdelta_clock_begin(), inner, end;

    getppid();
    kdelta_announce("nested-inner");
    inner = kdelta_clock_begin();
    getppid();
    end = kdelta_clock_end();
    getppid();
    kdelta_end();
    kdelta_iter();
    /* The outer one goes on to the inner's BEGIN: to the clock's reading, and what its value is made of. */
    note_clock("nested", outer, inner + kdelta_clock_overhead());
    note_clock("nested-inner", inner, end);
}

/* One name, two regions: their clocks add up as their counts do. */
static void twice(void)
{
    uint64_t begin = kdelta_clock_begin(), middle, end;

    getppid();
    middle = kdelta_clock_end();
    kdelta_announce("twice");
    end = kdelta_clock_begin();
    begin += end - middle + kdelta_clock_overhead();
    getppid();
    kdelta_iter();
    getppid();
    kdelta_iter();
    end = kdelta_clock_end();
    note_clock("twice", begin, end);
}

static void ended_by_child(void)
{
    uint64_t *end = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t begin = kdelta_clock_begin();

    if (!fork()) {
        *end = kdelta_clock_end();
        _exit(0);
    }
    wait(NULL);
    note_clock("ended-by-child", begin, *end);
}

static void child(int length)
{
    for (volatile int i = 0; i < length; i++)
        ;
    _exit(0);
}

static void children_in_turn(void)
{
    for (int i = 0; i < 50; i++) {
        if (!fork())
            child(100);
        wait(NULL);
    }
}

static void children_at_once(void)
{
    for (int i = 0; i < 200; i++)
        if (!fork())
            child(i * 20);
    while (wait(NULL) > 0)
        ;
}

static void grandchildren(void)
{
    for (int i = 0; i < 5; i++)
        if (!fork()) {
            for (int j = 0; j < 5; j++)
                if (!fork())
                    child(50);
            while (wait(NULL) > 0)
                ;
            _exit(0);
        }
    while (wait(NULL) > 0)
        ;
}

static void killed_child(void)
{
    for (int i = 0; i < 10; i++) {
        pid_t pid = fork();

        if (!pid)
            for (;;)
                pause();
        if (i % 2)
            sched_yield();
        kill(pid, SIGKILL);
        wait(NULL);
    }
}

/* Preempted by a tick in user code, and killed before it is back there. */
static void killed_at_work(void)
{
    for (int i = 0; i < 5; i++) {
        pid_t pid = fork();

        if (!pid)
            for (volatile int n = 0;; n++)
                ;
        sched_yield();
        sched_yield();
        kill(pid, SIGKILL);
        wait(NULL);
    }
}

static void *turn(void *barrier)
{
    for (int i = 0; i < 20; i++)
        pthread_barrier_wait(barrier);
    return NULL;
}

static void threads(void)
{
    pthread_barrier_t barrier;
    pthread_t made[4];

    pthread_barrier_init(&barrier, NULL, 4);
    for (int i = 0; i < 4; i++)
        pthread_create(&made[i], NULL, turn, &barrier);
    for (int i = 0; i < 4; i++)
        pthread_join(made[i], NULL);
}

static void execs(void)
{
    char *argv[] = { "/proc/self/exe", "exec", NULL }, *environment[] = { NULL };

    for (volatile int i = 0; i < 6; i++) {
        if (!(i % 2 ? fork() : vfork())) {
            execve(argv[0], argv, environment);
            _exit(1);
        }
        int status;

        if (wait(&status) < 0 || status)
            fail("exec");
    }
}

/* A child made before the region is another task, also when it shares all memory. */
static int other_pipe[2], back_pipe[2];

static void other_setup(void)
{
    if (pipe(other_pipe) || pipe(back_pipe))
        fail("pipe");
    if (!fork()) {
        char byte;

        close(other_pipe[1]);
        while (read(other_pipe[0], &byte, 1) == 1)
            if (write(back_pipe[1], &byte, 1) != 1)
                fail("write");
        _exit(0);
    }
    close(other_pipe[0]);
}

static void other_task(void)
{
    char byte = 1;

    for (int i = 0; i < 20; i++)
        if (write(other_pipe[1], &byte, 1) != 1 || read(back_pipe[0], &byte, 1) != 1)
            fail("ping-pong");
    close(other_pipe[1]);
    wait(NULL);
}

/* A partner joins, and what it makes is the measured tasks' as well: a thread that answers, and a child of that one. */
static void *partner_answers(void *unused)
{
    char byte;

    while (read(other_pipe[0], &byte, 1) == 1) {
        if (!fork())
            child(20);
        wait(NULL);
        if (write(back_pipe[1], &byte, 1) != 1)
            fail("write");
    }
    return unused;
}

static void partner_setup(void)
{
    pthread_t thread;

    if (pipe(other_pipe) || pipe(back_pipe))
        fail("pipe");
    kdelta_arm();
    if (!fork()) {
        kdelta_join();
        close(other_pipe[1]);
        pthread_create(&thread, NULL, partner_answers, NULL);
        pthread_join(thread, NULL);
        _exit(0);
    }
    close(other_pipe[0]);
}

/* Tasks that end give their place in memory to those made next: the measured one's children to others', and back. */
static void reuse_setup(void)
{
    for (int i = 0; i < 20; i++) {
        if (!fork())
            child(10);
        wait(NULL);
    }
}

static void signals_to_self(void)
{
    signal(SIGUSR1, SIG_IGN);
    for (int i = 0; i < 10; i++)
        raise(SIGUSR1);
}

const struct corner task_corners[] = {
    { "nested", NULL, nested, true },
    { "twice", NULL, twice, true },
    { "ended-by-child", NULL, ended_by_child, true },
    { "children-in-turn", NULL, children_in_turn, false },
    { "children-at-once", NULL, children_at_once, false },
    { "grandchildren", NULL, grandchildren, false },
    { "killed-child", NULL, killed_child, false },
    { "killed-at-work", NULL, killed_at_work, false },
    { "threads", NULL, threads, false },
    { "execs", NULL, execs, false },
    { "other-task", other_setup, other_task, false },
    { "partner-s-tasks", partner_setup, other_task, false },
    { "reused-tasks", reuse_setup, children_in_turn, false },
    { "signals-to-self", NULL, signals_to_self, false },
    { 0 },
};
