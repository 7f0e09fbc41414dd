/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs operations, each as a region of its own in a world of its own, and tells how many packets the router received.
 *
 * An operation is a process: what it leaves (namespaces, sockets, connections that are tracked) goes with it.
 */
#include "nat.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kdelta_clock.h"

#define WARM_UP_PART 4         /* of the iterations */
#define FIRST 8                /* iterations before everything settles */
#define OPERATION_SECONDS 120  /* of the guest's time: a call that waits for what was lost waits no longer */

static const struct operation *const tables[] = {
    udp_operations, tcp_operations, generator_operations, check_operations, NULL,
};

static unsigned long scale_percent = 100;
static bool clock_wanted;
static struct timespec settle_time;
static uint64_t start_ticks; /* which the host has chosen: its place on the grid is kept */

static void too_long(int signal)
{
    (void)signal;
    fail("packets were lost: a call did not end within %d s", OPERATION_SECONDS);
}

static void repeat(void (*step)(void), unsigned long times)
{
    for (; times; times--)
        step();
}

static void check(const struct operation *op, const struct traffic *sum)
{
    if (op->finish)
        op->finish();
    if (sum->lost)
        fail("%llu packets were lost by the router's devices", (unsigned long long)sum->lost);
    if (sum->packets < n_flows * op->iterations * scale_percent / 100)
        fail("the router received %llu packets only: they took another way", (unsigned long long)sum->packets);
}

static void measure(const struct operation *op)
{
    unsigned long iterations = op->iterations * scale_percent / 100 + (op->iterations * scale_percent < 100);
    void (*step)(void) = n_flows > 1 ? flows_step : op->step;
    struct traffic before, after;
    uint64_t begin, end;
    char name[64];

    signal(SIGALRM, too_long);
    alarm(OPERATION_SECONDS);
    world_make(op->rules == FORWARD);
    rules_load(op->rules);
    expect_sender(op->rules == FORWARD ? LAN_HOST : WAN_ROUTER);
    op->setup(op);
    flows_start(op, &settle_time, start_ticks);
    /* What the first packets set up once, and what all this left to be done later, is done now. */
    repeat(step, iterations == 1 ? 0 : FIRST);
    if (settle_time.tv_sec) {
        flows_rest();
        kdelta_clock_rest(&settle_time, start_ticks);
    }
    repeat(step, iterations == 1 ? 0 : op->warm_up ? op->warm_up : 1 + iterations / WARM_UP_PART);
    before = world_traffic();
    snprintf(name, sizeof name, "%s%s", op->everyone ? "*" : "", op->name);
    kdelta_announce(name);
    begin = kdelta_clock_begin();
    for (unsigned long n = iterations; n; n--) {
        step();
        kdelta_iter();
    }
    end = kdelta_clock_end();
    flows_end();
    after = world_traffic();
    after.packets -= before.packets;
    after.bytes -= before.bytes;
    check(op, &after);
    tell(TOLD_PACKETS, "%s %llu %llu\n", op->name, (unsigned long long)after.packets,
             (unsigned long long)after.bytes);
    if (clock_wanted && kdelta_clock_counts())
        tell(TOLD_CLOCK, "%s %llu %llu\n", op->name, (unsigned long long)(end - begin),
                 (unsigned long long)kdelta_clock_overhead());
}

static void run(const struct operation *op)
{
    int status;
    pid_t child;

    tell_operation(op);
    child = (pid_t)must(fork(), "a process");
    if (!child) {
        measure(op);
        _exit(0);
    }
    must(waitpid(child, &status, 0), "waiting for an operation");
    if (WIFSIGNALED(status))
        fail("ended by signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status) && WEXITSTATUS(status) != LEFT_OUT)
        _exit(1); /* it has said why */
    tell_operation(NULL);
}

static void run_unasked(const struct operation *op)
{
    if (op->alone && n_flows > 1)
        tell(TOLD_LEFT_OUT, "%s is left out: it has one flow\n", op->name);
    else
        run(op);
}

static const struct operation *find(const char *name)
{
    for (const struct operation *const *table = tables; *table; table++)
        for (const struct operation *op = *table; op->name; op++)
            if (!strcmp(op->name, name))
                return op;
    return NULL;
}

static void run_all(void (*each)(const struct operation *op))
{
    for (const struct operation *const *table = tables; *table; table++)
        for (const struct operation *op = *table; op->name; op++)
            if (!op->hidden)
                each(op);
}

static void print(const struct operation *op)
{
    puts(op->name);
}

static _Noreturn void usage(const char *wrong)
{
    dprintf(STDERR_FILENO,
            "nat: %s\n"
            "usage: nat [--list] [--clock] [--settle SECONDS] [--scale PERCENT] [--flows 1|2] [OPERATION...]\n",
            wrong);
    _exit(2);
}

static unsigned long number(const char *text)
{
    char *end;
    unsigned long value;

    if (!text)
        usage("a number is missing");
    value = strtoul(text, &end, 10);
    if (*end || end == text)
        usage(text);
    return value;
}

int main(int argc, char **argv)
{
    start_ticks = kdelta_clock_now();
    for (argv++, argc--; argc && **argv == '-'; argv++, argc--) {
        bool valued = !strcmp(*argv, "--settle") || !strcmp(*argv, "--scale") || !strcmp(*argv, "--flows");

        if (!strcmp(*argv, "--clock"))
            clock_wanted = true;
        else if (!strcmp(*argv, "--list"))
            return run_all(print), 0;
        else if (!strcmp(*argv, "--settle"))
            settle_time.tv_sec = (time_t)number(argv[1]);
        else if (!strcmp(*argv, "--scale"))
            scale_percent = number(argv[1]);
        else if (!strcmp(*argv, "--flows"))
            n_flows = (unsigned)number(argv[1]);
        else
            usage(*argv);
        argv += valued, argc -= valued;
    }
    if (n_flows < 1 || n_flows > MOST_FLOWS)
        usage("--flows is 1 or 2");
    for (int i = 0; i < argc; i++)
        if (!find(argv[i]))
            usage(argv[i]);
    tell_start(argc);
    if (!argc)
        run_all(run_unasked);
    for (int i = 0; i < argc; i++)
        run(find(argv[i]));
    tell_all();
    return 0;
}
