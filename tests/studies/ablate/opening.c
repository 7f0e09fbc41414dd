/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two processes, each on a CPU of its own, that share nothing: an iteration is a step of both. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "kdelta.h"
#include "kdelta_cpus.h"

#define FILES 48 /* more than a slab has room for */
#define WARM_UP 100
#define ITERATIONS 100

static struct kdelta_line *asked, *made;
static const char *const paths[] = {"/tmp/first", "/tmp/second"};

static void parent(unsigned cpu)
{
    (void)cpu;
    getppid();
}

static void open_many(unsigned cpu)
{
    int opened[FILES];

    for (int i = 0; i < FILES; i++)
        if ((opened[i] = open(paths[cpu], O_RDWR | O_CREAT | O_CLOEXEC, 0600)) < 0)
            _exit(1);
    for (int i = 0; i < FILES; i++)
        close(opened[i]);
}

static void (*const steps[])(unsigned cpu) = {parent, open_many};
static const char *const names[] = {"getppid", "open-many"};

static _Noreturn void second(void)
{
    kdelta_pin(1);
    kdelta_join();
    for (unsigned n = 0;; kdelta_line_set(made, ++n)) {
        while (kdelta_line_get(asked) == n)
            kdelta_end_turn();
        steps[n / (WARM_UP + ITERATIONS)](1);
    }
}

static void step(unsigned region)
{
    unsigned wanted = kdelta_line_get(asked) + 1;

    kdelta_line_set(asked, wanted);
    steps[region](0);
    while (kdelta_line_get(made) != wanted)
        kdelta_end_turn();
}

int main(void)
{
    pid_t other;

    asked = mmap(NULL, 2 * sizeof *asked, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (asked == MAP_FAILED || kdelta_pin(0))
        return 1;
    made = asked + 1;
    other = fork();
    if (!other) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        second();
    }
    for (unsigned region = 0; region < 2; region++) {
        for (int n = 0; n < WARM_UP; n++)
            step(region);
        kdelta_begin(names[region]);
        for (int n = 0; n < ITERATIONS; n++) {
            step(region);
            kdelta_iter();
        }
        kdelta_end();
    }
    return kill(other, SIGKILL);
}
