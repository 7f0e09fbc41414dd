/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes, threads and signals. */
#include "pairs.h"

#include <pthread.h>
#include <sys/wait.h>

#define STACK_BYTES (128 * 1024l)

static struct {
    pthread_attr_t attributes;
    char stack[STACK_BYTES] __attribute__((aligned(4096)));
} threads[CPUS] __attribute__((aligned(4096)));

static sigset_t answer;
static __thread volatile sig_atomic_t signals_caught;

static void step_fork(unsigned cpu)
{
    pid_t child = (pid_t)must(fork());

    (void)cpu;
    if (!child) {
        kdelta_end_turn(); /* so that both children are there at the same time */
        _exit(0);
    }
    must(waitpid(child, NULL, 0));
}

static void *thread_main(void *nothing)
{
    kdelta_end_turn();
    return nothing;
}

/* With a stack of its own a thread costs no mapping, and the libc's cache of stacks stays out of it. */
static void own_stack(unsigned cpu)
{
    for (long i = 0; i < STACK_BYTES; i += PAGE_BYTES)
        threads[cpu].stack[i] = 0;
    must(-pthread_attr_init(&threads[cpu].attributes));
    must(-pthread_attr_setstack(&threads[cpu].attributes, threads[cpu].stack, STACK_BYTES));
}

static void step_thread(unsigned cpu)
{
    pthread_t thread;

    must(-pthread_create(&thread, &threads[cpu].attributes, thread_main, NULL));
    must(-pthread_join(thread, NULL));
}

static void catch_signal(int number)
{
    (void)number;
    signals_caught++;
}

static void setup_handler(long unused)
{
    struct sigaction action = {.sa_handler = catch_signal};

    (void)unused;
    must(sigaction(SIGUSR1, &action, NULL));
}

static void step_signal(unsigned cpu)
{
    sig_atomic_t before = signals_caught;

    must(syscall(SYS_tgkill, process_of(cpu), thread_of(cpu), SIGUSR1));
    if (signals_caught == before)
        fail("no signal arrived");
}

/* Signals wait until they are asked for, in the process that is made after this, too. */
static void setup_answer(long unused)
{
    (void)unused;
    must(sigemptyset(&answer));
    must(sigaddset(&answer, SIGUSR1));
    must(sigprocmask(SIG_BLOCK, &answer, NULL));
}

static void end_answer(void)
{
    must(sigprocmask(SIG_UNBLOCK, &answer, NULL));
}

static void signal_other(unsigned cpu)
{
    must(syscall(SYS_tgkill, process_of(!cpu), thread_of(!cpu), SIGUSR1));
}

/* CPU 0 begins, CPU 1 answers. */
static void step_signal_across(unsigned cpu)
{
    if (!cpu)
        signal_other(0);
    must(sigwaitinfo(&answer, NULL));
    if (cpu)
        signal_other(1);
}

const struct pair process_pairs[] = {
    {"fork-exit-wait", .iterations = 10, .warm_up = 30, .step = step_fork},
    {"thread-create-join-threads", .threads = true, .iterations = 40, .warm_up = 200, .prepare = own_stack, .step = step_thread},
    {"thread-create-join-processes", .iterations = 40, .warm_up = 200, .prepare = own_stack, .step = step_thread},
    {"signal-self-threads", .threads = true, .iterations = 350, .setup = setup_handler, .step = step_signal},
    {"signal-self-processes", .iterations = 350, .setup = setup_handler, .step = step_signal},
    {"signal-across", .iterations = 200, .warm_up = 1000, .setup = setup_answer, .step = step_signal_across, .teardown = end_answer},
    {0},
};
