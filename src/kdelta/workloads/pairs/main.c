/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs pairs of operations on two CPUs, each pair as a region of its own; an iteration is a step of each CPU. */
#include "pairs.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kdelta_handover.h"

#define WARM_UP_LEAST 1
#define WARM_UP_PART 2 /* of the iterations */
#define WARM_UP_VARIABLE "KDELTA_WARM_UP" /* per cent: runs are perturbed by it, too */
#define WORDS_MAX 16
#define SETTLE_SECONDS 2
#define CLOCK_LINES_BYTES (16 * 1024)

static const struct pair *const tables[] = {
    call_pairs, file_pairs, descriptor_pairs, talk_pairs, wait_pairs, memory_pairs, process_pairs, NULL,
};

static unsigned long scale_percent = 100, warm_up_percent = 100;
static bool clock_wanted, later_wanted;
static const char *parent = "/tmp";
static uint64_t start_ticks; /* which the host has chosen: its place on the grid is kept */
static pid_t first_process;

/* Lines of the message for all regions; sent once, at the end. */
static char clock_lines[CLOCK_LINES_BYTES];
static size_t clock_lines_bytes;

/* The first process ends with the one that failed. */
void fail(const char *what)
{
    dprintf(STDERR_FILENO, "pairs: %s: %s: %s\n", current ? current->name : "start", what, strerror(errno));
    if (first_process && getpid() != first_process)
        kill(first_process, SIGTERM);
    _exit(1);
}

static void end(int number)
{
    (void)number;
    _exit(1);
}

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

/* The warm-up is counted, not timed: steps that wait for each other must be as many on both CPUs. */
static void measure(const struct pair *pair, bool last)
{
    unsigned long iterations = pair->iterations * scale_percent / 100, warm_up;
    uint64_t ticks;

    if (!iterations)
        iterations = 1;
    warm_up = pair->warm_up ? pair->warm_up * scale_percent / 100 : iterations / WARM_UP_PART;
    warm_up = WARM_UP_LEAST + warm_up * warm_up_percent / 100;
    run_pair(pair, warm_up, iterations, last, &ticks);
    if (clock_wanted)
        note_clock(pair->name, ticks);
}

static const struct pair *find(const char *name)
{
    for (const struct pair *const *table = tables; *table; table++)
        for (const struct pair *pair = *table; pair->name; pair++)
            if (!strcmp(pair->name, name))
                return pair;
    return NULL;
}

static _Noreturn void usage(const char *wrong)
{
    dprintf(STDERR_FILENO,
            "pairs: %s\n"
            "usage: pairs [--list] [--clock] [--scale PERCENT] [--dir FOLDER] [--later | PAIR...]\n",
            wrong);
    exit(2);
}

static void list(void)
{
    for (const struct pair *const *table = tables; *table; table++)
        for (const struct pair *pair = *table; pair->name; pair++)
            dprintf(STDOUT_FILENO, "%s\n", pair->name);
}

/* Takes options from words[at] on; returns where they end. */
static int take_options(int n, char **words, int at)
{
    for (; at < n && !strncmp(words[at], "--", 2); at++) {
        bool has_value = at + 1 < n;

        if (!strcmp(words[at], "--list"))
            list(), exit(0);
        else if (!strcmp(words[at], "--clock"))
            clock_wanted = true;
        else if (!strcmp(words[at], "--later"))
            later_wanted = true;
        else if (!strcmp(words[at], "--scale") && has_value)
            scale_percent = strtoul(words[++at], NULL, 10);
        else if (!strcmp(words[at], "--dir") && has_value)
            parent = words[++at];
        else
            usage("an option that it does not know, or without its value");
    }
    return at;
}

static void run_pairs(int n, char **names)
{
    for (int i = 0; i < n; i++)
        if (!find(names[i]))
            usage("a pair that it does not know");
    for (int i = 0; i < n; i++)
        measure(find(names[i]), later_wanted && i == n - 1);
    for (const struct pair *const *table = tables; !n && *table; table++)
        for (const struct pair *pair = *table; pair->name; pair++)
            measure(pair, false);
}

/* The words that the host hands over, a line each: how many. Before it does, it may take a snapshot. */
static int take_later_words(char **words)
{
    static char text[KDELTA_PIECE_MAX_BYTES + 1];
    const struct timespec settle = {.tv_sec = SETTLE_SECONDS};
    const uint8_t *piece;
    size_t size;
    int n = 0;

    kdelta_clock_rest(&settle, start_ticks); /* what the start has left for later is done before the snapshot, once for all pairs */
    kdelta_snapshot();
    kdelta_arm();
    size = kdelta_next_piece(&piece);
    if (size > KDELTA_PIECE_MAX_BYTES)
        usage("nothing says what is to be done later");
    memcpy(text, piece, size);
    for (char *word = strtok(text, "\n"); word && n < WORDS_MAX; word = strtok(NULL, "\n"))
        words[n++] = word;
    return n;
}

static void take_cpus(void)
{
    cpu_set_t there;

    must(sched_getaffinity(0, sizeof there, &there));
    if (!CPU_ISSET(0, &there) || !CPU_ISSET(1, &there)) {
        dprintf(STDERR_FILENO, "pairs needs two CPUs: give the guest 2 by --smp 2\n");
        exit(2);
    }
    pin(0);
}

int main(int argc, char **argv)
{
    char *later[WORDS_MAX];
    int at, n;

    start_ticks = kdelta_clock_now();
    first_process = getpid();
    signal(SIGTERM, end);
    if (getenv(WARM_UP_VARIABLE))
        warm_up_percent = strtoul(getenv(WARM_UP_VARIABLE), NULL, 10);
#ifdef KDELTA_TIMED
    parent = getenv("TMPDIR"); /* which the bundle sets */
#endif
    at = take_options(argc, argv, 1);
    take_cpus();
    folders_make(parent);
    if (later_wanted) {
        n = take_later_words(later);
        at = take_options(n, later, 0);
        run_pairs(n - at, later + at);
    } else
        run_pairs(argc - at, argv + at);
    if (clock_wanted && kdelta_clock_counts()) {
        kdelta_send("region-clock\n", strlen("region-clock\n"));
        kdelta_message(clock_lines, clock_lines_bytes);
    }
    if (later_wanted)
        kdelta_done();
    folders_remove();
    return 0;
}
