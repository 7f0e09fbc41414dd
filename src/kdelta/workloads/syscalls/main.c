/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs operations, each as a region of its own with an iteration a step. */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "kdelta_clock.h"

#define WARM_UP_PART 4 /* of the iterations, and */
#define WARM_UP_LEAST 1
#define WARM_UP_USUAL_MS 1
#define NS_PER_MS 1000000ull
#define WARM_UP_VARIABLE "KDELTA_WARM_UP" /* per cent: runs are perturbed by it, too */
#define LEVEL_MOST 4

static const struct operation *const tables[] = {
    call_operations, file_operations, memory_operations, process_operations,
    wait_operations, talk_operations, check_operations, NULL,
};

static const struct operation *current;
static unsigned long scale_percent = 100, warm_up_percent = 100;
static unsigned level; /* each has four times the warm-up and twice the iterations of the one before */
static bool clock_wanted;
static struct timespec settle_time;
static uint64_t start_ticks; /* which the host has chosen: its place on the grid is kept */

static char folder[4096], file[4096 + 8];
const char *const folder_path = folder, *const file_path = file;

void fail(const char *what)
{
    dprintf(STDERR_FILENO, "syscalls: %s: %s: %s\n", current ? current->name : "start", what, strerror(errno));
    _exit(1);
}

/* Lines of the message for all regions; sent once, at the end. */
static char clock_lines[16 * KIB];
static size_t clock_lines_bytes;

static void note_clock(const char *name, uint64_t ticks)
{
    size_t left = sizeof clock_lines - clock_lines_bytes;
    int size = snprintf(clock_lines + clock_lines_bytes, left, "%s %llu %llu\n", name, (unsigned long long)ticks,
                        (unsigned long long)kdelta_clock_overhead());

    if (size < 0 || (size_t)size >= left) {
        errno = ENOSPC;
        fail("too many regions for --clock");
    }
    clock_lines_bytes += (size_t)size;
}

/* What the scheduler and the allocators settle to is a matter of time as well as of iterations. */
static void warm_up(const struct operation *op, unsigned long iterations)
{
    uint64_t ns = (op->warm_up_ms ? op->warm_up_ms : WARM_UP_USUAL_MS) * NS_PER_MS * warm_up_percent / 100 << 2 * level;
    unsigned long least = (WARM_UP_LEAST + iterations / WARM_UP_PART) << 2 * level;
    uint64_t until = kdelta_clock_now() + (scale_percent < 100 ? 0 : ns);

    for (unsigned long n = 0; n < least || kdelta_clock_now() < until; n++)
        op->step();
}

static void measure(const struct operation *op)
{
    unsigned long iterations = (op->iterations << level) * scale_percent / 100;
    uint64_t begin, end;

    if (op->iterations && !iterations)
        iterations = 1;
    current = op;
    /* What the operation before left to be done later (freed pages, say) is done now, and not on this one's time. */
    if (settle_time.tv_sec) {
        nanosleep(&settle_time, NULL);
        kdelta_clock_align(start_ticks);
    }
    if (op->setup && !op->setup(op->argument))
        return;
    if (iterations)
        warm_up(op, iterations);
    if (op->ready)
        op->ready();
    kdelta_announce(op->name);
    begin = kdelta_clock_begin();
    for (unsigned long n = iterations; n; n--) {
        op->step();
        kdelta_iter();
    }
    end = kdelta_clock_end();
    if (op->teardown)
        op->teardown();
    if (clock_wanted)
        note_clock(op->name, end - begin);
    current = NULL;
}

static bool find(const char *name, struct operation *found)
{
    for (const struct operation *const *table = tables; *table; table++)
        for (const struct operation *op = *table; op->name; op++) {
            size_t size = strlen(op->name);
            bool family = op->name[size - 1] == '-';
            char *end;

            *found = *op;
            if (!family && !strcmp(op->name, name))
                return true;
            if (family && !strncmp(op->name, name, size) && name[size]) {
                found->name = name;
                found->argument = strtol(name + size, &end, 10);
                return !*end;
            }
        }
    return false;
}

static void folder_make(const char *parent)
{
    static char bytes[FILE_BYTES];
    int fd;

    if (snprintf(folder, sizeof folder, "%s/kdelta-syscalls", parent) >= (int)sizeof folder)
        folder[0] = '\0';
    snprintf(file, sizeof file, "%s/file", folder);
    if (mkdir(folder, 0700) && errno != EEXIST)
        fail(folder);
    fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, bytes, sizeof bytes) != (ssize_t)sizeof bytes)
        fail(file);
    close(fd);
}

static _Noreturn void usage(const char *wrong)
{
    dprintf(STDERR_FILENO,
            "syscalls: %s\n"
            "usage: syscalls [--list] [--clock] [--settle SECONDS] [--scale PERCENT] [--level 0-4] [--dir FOLDER]\n"
            "                [OPERATION...]\n",
            wrong);
    exit(2);
}

static void list(void)
{
    for (const struct operation *const *table = tables; *table; table++)
        for (const struct operation *op = *table; op->name; op++)
            if (!op->hidden)
                dprintf(STDOUT_FILENO, "%s\n", op->name);
}

int main(int argc, char **argv)
{
    const char *parent = "/tmp";
    struct operation op;
    int arg = 1;

    start_ticks = kdelta_clock_now();
    if (getenv(WARM_UP_VARIABLE))
        warm_up_percent = strtoul(getenv(WARM_UP_VARIABLE), NULL, 10);
    for (; arg < argc && !strncmp(argv[arg], "--", 2); arg++) {
        if (!strcmp(argv[arg], "--list"))
            return list(), 0;
        else if (!strcmp(argv[arg], "--clock"))
            clock_wanted = true;
        else if (!strcmp(argv[arg], "--settle") && arg + 1 < argc)
            settle_time.tv_sec = strtol(argv[++arg], NULL, 10);
        else if (!strcmp(argv[arg], "--scale") && arg + 1 < argc)
            scale_percent = strtoul(argv[++arg], NULL, 10);
        else if (!strcmp(argv[arg], "--level") && arg + 1 < argc && (level = (unsigned)strtoul(argv[arg + 1], NULL, 10)) <= LEVEL_MOST)
            arg++;
        else if (!strcmp(argv[arg], "--dir") && arg + 1 < argc)
            parent = argv[++arg];
        else
            usage("an option that it does not know, or without its value");
    }
    for (int i = arg; i < argc; i++)
        if (!find(argv[i], &op))
            usage("an operation that it does not know");
    folder_make(parent);
    for (int i = arg; i < argc; i++)
        if (find(argv[i], &op))
            measure(&op);
    for (const struct operation *const *table = tables; arg == argc && *table; table++)
        for (const struct operation *each = *table; each->name; each++)
            if (!each->hidden)
                measure(each);
    if (clock_wanted && kdelta_clock_counts()) {
        kdelta_send("region-clock\n", strlen("region-clock\n"));
        kdelta_message(clock_lines, clock_lines_bytes);
    }
    unlink(file);
    rmdir(folder);
    return 0;
}
