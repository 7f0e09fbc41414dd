/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls that are known: each case is a region, and names of functions that count begin with k_. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "kdelta.h"

#define APART __attribute__((noipa))
#define FAR __attribute__((noipa, section(".text.zfar"), aligned(1 << 17)))

enum { COROUTINES = 3, STEPS = 4, STACK_BYTES = 1 << 16, FRAME_BYTES = 4096, DEEP = 64 };

static volatile int sink;

APART void k_leaf(void) { sink++; }

APART void k_twice(void)
{
    for (volatile int i = 0; i < 2; i++)
        k_leaf();
    sink++;
}

APART void k_nested(void)
{
    for (volatile int i = 0; i < 3; i++)
        k_twice();
    k_leaf();
    sink++;
}

APART int k_recursive(int n)
{
    int below = n ? k_recursive(n - 1) : 0;

    return below + sink;
}

APART void k_recursion(void)
{
    sink += k_recursive(5);
}

APART __attribute__((optimize("optimize-sibling-calls"))) void k_tail_target(void)
{
    k_twice();
    sink++;
}

APART __attribute__((optimize("optimize-sibling-calls"))) void k_tail(void)
{
    k_leaf();
    k_tail_target();
}

APART void k_tails(void)
{
    for (volatile int i = 0; i < 4; i++)
        k_tail();
    k_leaf();
    sink++;
}

static jmp_buf place;

APART void k_thrower(int n)
{
    if (n)
        k_thrower(n - 1);
    else if (sink >= 0)
        longjmp(place, 1);
    sink++;
}

APART void k_jumps(void)
{
    for (volatile int i = 0; i < 3; i++) {
        if (!setjmp(place))
            k_thrower(3);
        k_leaf();
    }
    k_twice();
    sink++;
}

static ucontext_t scheduler, coroutines[COROUTINES];
static char stacks[COROUTINES][STACK_BYTES] __attribute__((aligned(64)));
static int running;

APART void k_yield(void)
{
    swapcontext(&coroutines[running], &scheduler);
    sink++;
}

APART void k_step(void)
{
    k_leaf();
    k_yield();
    sink++;
}

static void k_coroutine(void)
{
    for (volatile int i = 0; i < STEPS; i++)
        k_step();
    swapcontext(&coroutines[running], &scheduler);
}

APART void k_resume(void)
{
    swapcontext(&scheduler, &coroutines[running]);
    sink++;
}

APART void k_coroutines(void)
{
    for (int i = 0; i < COROUTINES; i++) {
        getcontext(&coroutines[i]);
        coroutines[i].uc_stack.ss_sp = stacks[i];
        coroutines[i].uc_stack.ss_size = sizeof stacks[i];
        makecontext(&coroutines[i], k_coroutine, 0);
    }
    for (volatile int i = 0; i < COROUTINES * (STEPS + 1); i++) {
        running = i % COROUTINES;
        k_resume();
        k_twice();
    }
}

static sigjmp_buf handler_place;
static int leaves_handler;

static void k_handler(int number)
{
    (void)number;
    k_leaf();
    if (leaves_handler)
        siglongjmp(handler_place, 1);
    sink++;
}

APART void k_raises(void)
{
    kill(getpid(), SIGUSR1);
    sink++;
}

APART void k_signals(void)
{
    struct sigaction action = { .sa_handler = k_handler };

    sigaction(SIGUSR1, &action, NULL);
    leaves_handler = 0;
    for (volatile int i = 0; i < 5; i++) {
        k_raises();
        k_twice();
    }
    leaves_handler = 1;
    for (volatile int i = 0; i < 2; i++) {
        if (!sigsetjmp(handler_place, 1))
            k_raises();
        k_leaf();
    }
}

APART void *k_thread(void *unused)
{
    for (volatile int i = 0; i < 7; i++)
        k_twice();
    return unused;
}

APART void k_threads(void)
{
    for (volatile int i = 0; i < 2; i++) {
        pthread_t thread;

        pthread_create(&thread, NULL, k_thread, NULL);
        pthread_join(thread, NULL);
    }
    k_leaf();
    sink++;
}

APART void k_child(void)
{
    k_twice();
    sink++;
}

APART void k_forks(void)
{
    for (volatile int i = 0; i < 3; i++) {
        pid_t child = fork();

        if (!child) {
            k_child();
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    k_leaf();
    sink++;
}

APART void k_execs(void)
{
    for (volatile int i = 0; i < 2; i++) {
        pid_t child = vfork();

        if (!child) {
            execl("/other", "/other", NULL);
            _exit(1);
        }
        waitpid(child, NULL, 0);
    }
    k_leaf();
    sink++;
}

/* In 128 KiB of its own: the kernel maps pages around one that is fetched. */
FAR __attribute__((used)) void k_before(void) { sink++; }

FAR void k_far(void)
{
    k_leaf();
    sink++;
}

FAR __attribute__((used)) void k_after(void) { sink++; }

APART void k_fetch_faults(void)
{
    for (volatile int i = 0; i < 3; i++)
        k_far();
    sink++;
}

APART void k_deep(int n)
{
    volatile char frame[FRAME_BYTES];

    frame[0] = (char)n;
    if (n)
        k_deep(n - 1);
    sink += frame[0];
}

APART void k_stack_faults(void)
{
    k_deep(DEEP);
    k_leaf();
    sink++;
}

APART void k_calls_system(void)
{
    for (volatile int i = 0; i < 9; i++)
        getppid();
    sink++;
}

static const struct {
    const char *name;
    void (*go)(void);
} cases[] = {
    { "nested", k_nested },
    { "recursion", k_recursion },
    { "tails", k_tails },
    { "jumps", k_jumps },
    { "coroutines", k_coroutines },
    { "signals", k_signals },
    { "threads", k_threads },
    { "forks", k_forks },
    { "execs", k_execs },
    { "fetch-faults", k_fetch_faults },
    { "stack-faults", k_stack_faults },
    { "system", k_calls_system },
};

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kdelta_begin(cases[i].name);
        cases[i].go();
        kdelta_end();
    }
    return 0;
}
