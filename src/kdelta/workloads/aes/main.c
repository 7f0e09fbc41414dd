/* SPDX-License-Identifier: GPL-2.0-or-later */
/* AES-256-CBC over pieces of 512 bytes: in user space, in the kernel, and through a socket. Each operation is a region.
 *
 * Besides this program there can be PROGRAM-kflags: the same one, but for the cipher, which is compiled with the flags of the
 * kernel that runs, and with nothing but the cipher's operations.
 */
#include "bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct operation *const tables[] = {
    own_operations,
#ifndef KERNEL_FLAGS
    flags_operations,
    kernel_operations,
    socket_operations,
#endif
};
#define TABLES (sizeof tables / sizeof *tables)

struct pieces pieces;
unsigned long loop_counts[2] = {64, 256};

struct lab lab;

static const char *current = "start";
static char clock_lines[4096];

void fail(const char *what)
{
    dprintf(STDERR_FILENO, "aes: %s: %s: %s\n", current, what, strerror(errno));
    _exit(1);
}

bool left_out(const char *name, const char *why)
{
    char line[512];
    int size = snprintf(line, sizeof line, "warning\n%s is left out: %s\n", name, why);

    dprintf(STDERR_FILENO, "aes: %s", line + strlen("warning\n"));
    kdelta_message(line, (size_t)size);
    return false;
}

void note_clock(const char *name, uint64_t ticks, uint64_t overhead)
{
    size_t used = strlen(clock_lines);

    snprintf(clock_lines + used, sizeof clock_lines - used, "%s %llu %llu\n", name, (unsigned long long)ticks,
             (unsigned long long)overhead);
}

void check_result(const uint8_t *right)
{
    if (!bytes_differ(pieces.result, right, PIECES_BYTES))
        return;
    errno = EBADMSG;
    fail("a wrong result");
}

static void measure(const struct operation *op)
{
    current = op->name;
    if (op->setup(op->name)) {
        /* What was left to be done later is done now, and not on this operation's time. */
        if (lab.settle_seconds)
            kdelta_clock_rest(&(struct timespec){.tv_sec = (time_t)lab.settle_seconds}, lab.start_ticks);
        op->measure(op->name);
        if (op->teardown)
            op->teardown();
    }
    current = "end";
}

static _Noreturn void usage(const char *wrong)
{
    dprintf(STDERR_FILENO,
            "aes: %s\n"
            "usage: aes [--list] [--clock] [--settle SECONDS] [--start TICK] [--iterations N] [OPERATION...]\n",
            wrong);
    exit(2);
}

static const struct operation *find(const char *name)
{
    for (size_t i = 0; i < TABLES; i++)
        for (const struct operation *op = tables[i]; op->name; op++)
            if (!strcmp(op->name, name))
                return op;
    usage("an operation that it does not know");
}

static void list(void)
{
    for (size_t i = 0; i < TABLES; i++)
        for (const struct operation *op = tables[i]; op->name; op++)
            dprintf(STDOUT_FILENO, "%s\n", op->name);
}

/* The number of the options. */
static int options(char **argv)
{
    int arg = 1;

    for (; argv[arg] && !strncmp(argv[arg], "--", 2); arg++) {
        if (!strcmp(argv[arg], "--list"))
            list(), exit(0);
        else if (!strcmp(argv[arg], "--clock"))
            lab.clock = true;
        else if (!strcmp(argv[arg], "--settle") && argv[arg + 1])
            lab.settle_seconds = strtoul(argv[++arg], NULL, 10);
        else if (!strcmp(argv[arg], "--start") && argv[arg + 1])
            lab.start_ticks = strtoull(argv[++arg], NULL, 10);
        else if (!strcmp(argv[arg], "--iterations") && argv[arg + 1])
            loop_counts[1] = strtoul(argv[++arg], NULL, 10);
        else
            usage("an option that it does not know, or without its value");
    }
    return arg;
}

int main(int argc, char **argv)
{
    int arg;

    lab.start_ticks = kdelta_clock_now();
    lab.program = argv[0];
    arg = options(argv);
    for (int i = arg; i < argc; i++)
        find(argv[i]);
    if (pieces_start(&pieces))
        errno = EBADMSG, fail("the cipher does not give what the published vector says");
    for (int i = arg; i < argc; i++)
        measure(find(argv[i]));
    for (size_t i = 0; arg == argc && i < TABLES; i++)
        for (const struct operation *op = tables[i]; op->name; op++)
            measure(op);
    if (lab.clock) {
        kdelta_send("region-clock\n", strlen("region-clock\n"));
        kdelta_message(clock_lines, strlen(clock_lines));
    }
    return 0;
}
