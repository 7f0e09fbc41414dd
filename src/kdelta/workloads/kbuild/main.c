/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs make over some of a kernel's objects, each operation as a region: one iteration, all of it make's and its children's. */
#include "kbuild.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kdelta_clock.h"

#define PLACE "/usr/src/linux"
#define MAKE "/usr/bin/make"
#define LOG "/tmp/kbuild.log"
#define STACK_BYTES (8ul << 20) /* as a login has it */
#define SMALL 3
#define ALL MAX_OBJECTS

static const struct operation {
    const char *name, *jobs;
    size_t objects;
} operations[] = {
    {"make-j1", "-j1", ALL},
    {"make-j4", "-j4", ALL},
    {"small-j1", "-j1", SMALL},
    {"small-j4", "-j4", SMALL},
};
#define OPERATIONS (sizeof operations / sizeof *operations)

/* In a mode that calls the kernel directly, --wrap=execve adds what makes make do so, too. */
static char *const environment[] = {"PATH=/usr/bin:/bin", "HOME=/root", "LC_ALL=C", "SHELL=/bin/sh", "TMPDIR=/tmp",
                                    NULL};

static struct tree tree;
static bool clock_wanted;
static struct timespec settle_time;
static uint64_t start_ticks; /* which the host has chosen: its place on the grid is kept */

static size_t count_of(const struct operation *op)
{
    return op->objects < tree.n_objects ? op->objects : tree.n_objects;
}

static _Noreturn void exec_make(const char *jobs, size_t objects)
{
    char *argv[MAX_OBJECTS + MAX_WORDS + 4];
    size_t n = 0;
    int log = open(LOG, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    close(log);
    argv[n++] = (char *)MAKE;
    argv[n++] = (char *)jobs;
    for (size_t i = 0; i < tree.n_words; i++)
        argv[n++] = (char *)tree.words[i];
    for (size_t i = 0; i < objects; i++)
        argv[n++] = (char *)tree.objects[i].path;
    argv[n] = NULL;
    execve(MAKE, argv, environment);
    dprintf(STDERR_FILENO, "error: " MAKE ": %s\n", strerror(errno));
    _exit(127);
}

static int run_make(const char *jobs, size_t objects)
{
    int status = 0;
    pid_t child = fork();

    if (!child)
        exec_make(jobs, objects);
    if (child > 0)
        waitpid(child, &status, 0);
    return child < 0 ? -1 : status;
}

static void must_succeed(int status)
{
    if (WIFSIGNALED(status))
        fail("make ended by signal %d", WTERMSIG(status));
    if (status)
        fail_with_log("make failed", LOG);
}

static void measure(const struct operation *op)
{
    size_t objects = count_of(op);
    char text[256];
    uint64_t begin, end;
    int status, size;

    tell_operation(op->name);
    /* What make finds changed since the tree was laid down, it does now, once: the same for all operations. */
    tree_remove_objects(&tree);
    must_succeed(run_make(op->jobs, 1));
    tree_remove_objects(&tree);
    if (settle_time.tv_sec)
        kdelta_clock_rest(&settle_time, start_ticks);
    kdelta_announce(op->name);
    begin = kdelta_clock_begin();
    status = run_make(op->jobs, objects);
    kdelta_iter();
    end = kdelta_clock_end();
    must_succeed(status);
    tree_check_objects(&tree, objects);
    printf("%s: %zu objects\n", op->name, objects);
    fflush(stdout);
    if (!clock_wanted || !kdelta_clock_counts())
        return;
    size = snprintf(text, sizeof text, "region-clock\n%s %llu %llu\n", op->name, (unsigned long long)(end - begin),
                    (unsigned long long)kdelta_clock_overhead());
    kdelta_message(text, (size_t)size);
}

static void run(const struct operation *op)
{
    int status;
    pid_t child = (pid_t)must(fork(), "a process");

    if (!child) {
        measure(op);
        _exit(0);
    }
    must(waitpid(child, &status, 0), "waiting for an operation");
    if (status)
        _exit(1); /* it has said why */
}

static const struct operation *find(const char *name)
{
    for (size_t i = 0; i < OPERATIONS; i++)
        if (!strcmp(operations[i].name, name))
            return &operations[i];
    return NULL;
}

static _Noreturn void usage(const char *wrong)
{
    dprintf(STDERR_FILENO, "kbuild: %s\nusage: kbuild [--list] [--clock] [--settle SECONDS] [OPERATION...]\n", wrong);
    _exit(2);
}

int main(int argc, char **argv)
{
    const struct rlimit stack = {STACK_BYTES, STACK_BYTES};

    start_ticks = kdelta_clock_now();
    for (argv++, argc--; argc && **argv == '-'; argv++, argc--) {
        if (!strcmp(*argv, "--clock")) {
            clock_wanted = true;
        } else if (!strcmp(*argv, "--settle") && argc > 1) {
            settle_time.tv_sec = strtol(*++argv, NULL, 10);
            argc--;
        } else if (!strcmp(*argv, "--list")) {
            for (size_t i = 0; i < OPERATIONS; i++)
                puts(operations[i].name);
            return 0;
        } else {
            usage(*argv);
        }
    }
    for (int i = 0; i < argc; i++)
        if (!find(argv[i]))
            usage(argv[i]);
    must(setrlimit(RLIMIT_STACK, &stack), "the limit of stacks");
    tree_load(&tree, PLACE);
    for (size_t i = 0; i < (argc ? (size_t)argc : OPERATIONS); i++)
        run(argc ? find(argv[i]) : &operations[i]);
    return 0;
}
