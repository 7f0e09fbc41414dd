/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two flows at once, of a process on each CPU: an iteration is a step of both. What they share is the router. */
#include "nat.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kdelta_clock.h"
#include "kdelta_cpus.h"

static struct meeting {
    struct kdelta_line asked; /* for so many steps */
    struct kdelta_line made;  /* by the second flow */
    struct kdelta_line rests; /* the second flow is to sleep, as the first one does */
} *meeting;

unsigned flow, n_flows = 1;

static void (*own_step)(void);
static pid_t other;

static void pin(unsigned cpu)
{
    must(kdelta_pin(cpu), "choosing a CPU");
}

static _Noreturn void second_flow(const struct operation *op, const struct timespec *settle, uint64_t start_ticks)
{
    flow = 1;
    pin(flow);
    kdelta_join();
    op->setup(op);
    for (unsigned n = 0;; kdelta_line_set(&meeting->made, ++n)) {
        for (; kdelta_line_get(&meeting->asked) == n; kdelta_end_turn())
            if (kdelta_line_get(&meeting->rests)) {
                kdelta_line_set(&meeting->rests, 0);
                kdelta_clock_rest(settle, start_ticks); /* with the first */
            }
        op->step();
    }
}

static void other_failed(int number)
{
    (void)number;
    _exit(1); /* it has said why */
}

void flows_start(const struct operation *op, const struct timespec *settle, uint64_t start_ticks)
{
    pid_t first = getpid();

    if (n_flows == 1)
        return;
    if (op->alone)
        fail("it has one flow");
    if (sysconf(_SC_NPROCESSORS_ONLN) < (long)n_flows)
        fail("%u flows need %u CPUs: add --smp %u", n_flows, n_flows, n_flows);
    meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (meeting == MAP_FAILED)
        fail("no shared memory");
    own_step = op->step;
    pin(flow);
    signal(SIGCHLD, other_failed);
    other = (pid_t)must(fork(), "a process");
    if (!other) {
        signal(SIGCHLD, SIG_DFL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != first)
            _exit(1);
        second_flow(op, settle, start_ticks);
    }
}

void flows_step(void)
{
    unsigned wanted = kdelta_line_get(&meeting->asked) + 1;

    kdelta_line_set(&meeting->asked, wanted);
    own_step();
    while (kdelta_line_get(&meeting->made) != wanted)
        kdelta_end_turn();
}

void flows_rest(void)
{
    if (other)
        kdelta_line_set(&meeting->rests, 1);
}

void flows_end(void)
{
    if (!other)
        return;
    signal(SIGCHLD, SIG_DFL);
    kill(other, SIGKILL);
    must(waitpid(other, NULL, 0), "waiting for a process");
}
