/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A bundle: a workload that times itself, as one static program for any Linux of its architecture.
 *
 *     bundle run [OPERATION...] >FILE      times the operations under the kernel that runs
 *     bundle exec PROGRAM [WORD...] >FILE  times a program, or its regions if it was compiled with -DKDELTA_TIMED
 *     bundle list                          lists the operations
 */
#define _GNU_SOURCE
#include "timed.h"

#include <errno.h>
#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#ifdef KDELTA_WORKLOAD
/* The workload's main, which is compiled under that name. */
#undef main
int workload_main(int argc, char **argv);
#endif

/* The last CPU that it may run on: all operations share one, as in kdelta's guests. */
static int keep_to_one_cpu(void)
{
    cpu_set_t set;
    int last = -1;

    if (sched_getaffinity(0, sizeof set, &set))
        return -1;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set))
            last = cpu;
    CPU_ZERO(&set);
    CPU_SET(last, &set);
    return sched_setaffinity(0, sizeof set, &set) ? -1 : last;
}

struct words {
    int argc;
    char **argv;
};

#ifdef KDELTA_WORKLOAD
/* The workload's files and the programs that it starts: no other run and no other user has this folder. */
static char own_folder[4096];
static pid_t own_pid;

static bool make_own_folder(const char *place)
{
    struct statvfs system;

    if (statvfs(place, &system))
        return false;
    errno = EACCES;
    return !(system.f_flag & ST_NOEXEC) &&
           snprintf(own_folder, sizeof own_folder, "%s/kdelta-XXXXXX", place) < (int)sizeof own_folder && mkdtemp(own_folder);
}

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)facts, (void)kind, (void)place;
    remove(path); /* what cannot be removed is left */
    return 0;
}

static void remove_own_folder(void)
{
    if (getpid() == own_pid) /* the workload is a child, and ends by exit() */
        nftw(own_folder, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* Returns where the folder is: in memory, if there is such a place. */
static const char *folder(void)
{
    static const char *const places[] = {"/dev/shm", "/tmp", "/run", "/var/tmp", ".", NULL};
    const char *given = getenv("TMPDIR");
    const char *const asked[] = {given, NULL};

    for (const char *const *place = given ? asked : places; *place; place++)
        if (make_own_folder(*place)) {
            own_pid = getpid();
            if (atexit(remove_own_folder) || setenv("TMPDIR", own_folder, 1))
                timed_fail(own_folder);
            return *place;
        }
    timed_fail(given ? given : "no folder for files and programs: set TMPDIR");
}

/* The workload's own results are what is printed: its words go where errors go. */
static void workload_start(void *of)
{
    const struct words *words = of;

    if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        timed_fail("starting the workload");
    exit(workload_main(words->argc, words->argv));
}

static int run(struct words words)
{
    struct timed timed = {.workload = KDELTA_WORKLOAD, .folder = folder(), .cpu = keep_to_one_cpu(), .start = workload_start, .words = &words};

    return timed_run(&timed) ? 1 : 0;
}
#endif

static void program_start(void *of)
{
    const struct words *words = of;

    if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        timed_fail("starting the program");
    execv(words->argv[0], words->argv);
    timed_fail(words->argv[0]);
}

/* A program of the user's keeps its folders. */
static int exec(struct words words)
{
    const char *path = words.argv[0], *slash = strrchr(path, '/');
    struct timed timed = {
        .workload = slash ? slash + 1 : path,
        .path = path,
        .arguments = words.argv + 1,
        .folder = ".",
        .cpu = keep_to_one_cpu(),
        .whole = true,
        .start = program_start,
        .words = &words,
    };

    return timed_run(&timed) ? 1 : 0;
}

int main(int argc, char **argv)
{
#ifdef KDELTA_WORKLOAD
    if (argc > 1 && !strcmp(argv[1], "run"))
        return run((struct words){argc - 1, argv + 1}); /* whose first stands for the program's name */
    if (argc == 2 && !strcmp(argv[1], "list")) {
        char *list[] = {argv[0], "--list", NULL};

        return workload_main(2, list);
    }
#endif
    if (argc > 2 && !strcmp(argv[1], "exec"))
        return exec((struct words){argc - 2, argv + 2});
#ifdef KDELTA_WORKLOAD
    dprintf(STDERR_FILENO, "usage: %s run [OPERATION...] >FILE\n       %s list\n", argv[0], argv[0]);
#endif
    dprintf(STDERR_FILENO, "usage: %s exec PROGRAM [WORD...] >FILE\n", argv[0]);
    return 2;
}
