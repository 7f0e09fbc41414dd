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

#include "kdelta_handover.h"

#define WARM_UP_PART 4 /* of the iterations, and */
#define WARM_UP_LEAST 1
#define WARM_UP_USUAL_MS 1
#define NS_PER_MS 1000000ull
#define WARM_UP_VARIABLE "KDELTA_WARM_UP" /* per cent: runs are perturbed by it, too */
#define LEVEL_MOST 4
#define WORDS_MAX 16

static const struct operation *const tables[] = {
    call_operations, file_operations, memory_operations, process_operations,
    wait_operations, talk_operations, check_operations, NULL,
};

static const struct operation *current;
static unsigned long scale_percent = 100, warm_up_percent = 100;
static unsigned level; /* each has four times the warm-up and twice the iterations of the one before */
static bool clock_wanted, later_wanted;
static const char *parent = "/tmp";
static struct timespec settle_time;
static struct timespec window; /* after the last iteration, within the region: for what is left to other tasks */
static bool settled;
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

static void rest(const struct timespec *time)
{
    kdelta_clock_rest(time, start_ticks);
}

/* What was left to be done later (freed pages, say) is done now, and not on the next operation's time. */
static void settle(void)
{
    if (settle_time.tv_sec && !settled)
        rest(&settle_time);
    settled = true;
}

/* The guest ends after its last operation, so nothing has to be put back then. */
static void measure(const struct operation *op, bool last)
{
    unsigned long iterations = (op->iterations << level) * scale_percent / 100;
    uint64_t begin, end;

    if (op->iterations && !iterations)
        iterations = 1;
    current = op;
    settle();
    settled = false;
    if (op->setup && !op->setup(op->argument))
        return;
    if (window.tv_sec)
        rest(&window); /* in place of the warm-up, whose work would be left for the region */
    else if (iterations)
        warm_up(op, iterations);
    if (op->ready)
        op->ready();
    kdelta_announce(op->name);
    begin = kdelta_clock_begin();
#ifdef KDELTA_TIMED
    for (unsigned long n = 1; kdelta_wants_more(); n++) {
        op->step();
        kdelta_iter();
        if (op->ready && n % op->iterations == 0)
            kdelta_aside(op->ready);
    }
#else
    for (unsigned long n = iterations; n; n--) {
        op->step();
        kdelta_iter();
    }
#endif
    if (window.tv_sec)
        nanosleep(&window, NULL);
    end = kdelta_clock_end();
    if (op->teardown && !last)
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

/* A folder that is there may be another user's, who waits for what is written through links in it. */
static bool is_foreign(void)
{
#ifdef KDELTA_TIMED
    struct stat facts;

    return lstat(folder, &facts) || !S_ISDIR(facts.st_mode) || facts.st_uid != geteuid();
#else
    return false; /* a guest has one user */
#endif
}

static void folder_make(const char *parent)
{
    static char bytes[FILE_BYTES];
    int fd;

    if (snprintf(folder, sizeof folder, "%s/kdelta-syscalls", parent) >= (int)sizeof folder)
        folder[0] = '\0';
    snprintf(file, sizeof file, "%s/file", folder);
    if (mkdir(folder, 0700) && (errno != EEXIST || is_foreign()))
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
            "usage: syscalls [--list] [--clock] [--settle SECONDS] [--window SECONDS] [--scale PERCENT] [--level 0-4] [--dir FOLDER]\n"
            "                [--later | OPERATION...]\n",
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
        else if (!strcmp(words[at], "--settle") && has_value)
            settle_time.tv_sec = strtol(words[++at], NULL, 10);
        else if (!strcmp(words[at], "--window") && has_value)
            window.tv_sec = strtol(words[++at], NULL, 10);
        else if (!strcmp(words[at], "--scale") && has_value)
            scale_percent = strtoul(words[++at], NULL, 10);
        else if (!strcmp(words[at], "--level") && has_value && (level = (unsigned)strtoul(words[at + 1], NULL, 10)) <= LEVEL_MOST)
            at++;
        else if (!strcmp(words[at], "--dir") && has_value)
            parent = words[++at];
        else
            usage("an option that it does not know, or without its value");
    }
    return at;
}

static void run_operations(int n, char **names)
{
    struct operation op;

    for (int i = 0; i < n; i++)
        if (!find(names[i], &op))
            usage("an operation that it does not know");
    for (int i = 0; i < n; i++)
        if (find(names[i], &op))
            measure(&op, later_wanted && i == n - 1);
    for (const struct operation *const *table = tables; !n && *table; table++)
        for (const struct operation *each = *table; each->name; each++)
            if (!each->hidden)
                measure(each, false);
}

/* The words that the host hands over, a line each: how many. Before it does, it may take a snapshot. */
static int take_later_words(char **words)
{
    static char text[KDELTA_PIECE_MAX_BYTES + 1];
    const uint8_t *piece;
    size_t size;
    int n = 0;

    settle(); /* before the snapshot, so that it is done once for all operations */
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

int main(int argc, char **argv)
{
    char *later[WORDS_MAX];
    int at, n;

    start_ticks = kdelta_clock_now();
    if (getenv(WARM_UP_VARIABLE))
        warm_up_percent = strtoul(getenv(WARM_UP_VARIABLE), NULL, 10);
#ifdef KDELTA_TIMED
    parent = getenv("TMPDIR"); /* which the bundle sets */
#endif
    at = take_options(argc, argv, 1);
    folder_make(parent);
    if (later_wanted) {
        n = take_later_words(later);
        at = take_options(n, later, 0);
        run_operations(n - at, later + at);
    } else
        run_operations(argc - at, argv + at);
    if (clock_wanted && kdelta_clock_counts()) {
        kdelta_send("region-clock\n", strlen("region-clock\n"));
        kdelta_message(clock_lines, clock_lines_bytes);
    }
    if (later_wanted)
        kdelta_done();
    unlink(file);
    rmdir(folder);
    return 0;
}
