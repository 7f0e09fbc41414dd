/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include "timed.h"

#include "facts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kdelta.h"

#define RESULTS_FD 9    /* of the program */
#define MOST_BYTES (16u << 20)
#define FNV_BASIS 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u

static uint64_t hash = FNV_BASIS;
static unsigned long lines;

/* What the program wrote, which is printed when it has ended: a console that is slow takes time of the CPU that is timed. */
static char *kept;
static size_t kept_size;

_Noreturn void timed_fail(const char *what)
{
    dprintf(STDERR_FILENO, "bundle: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void put(const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ (unsigned char)bytes[i]) * FNV_PRIME;
        lines += bytes[i] == '\n';
    }
    for (size_t sent = 0; sent < size;) {
        ssize_t more = write(STDOUT_FILENO, bytes + sent, size - sent);

        if (more < 0 && errno != EINTR)
            timed_fail("writing the results");
        sent += more > 0 ? (size_t)more : 0;
    }
}

static void make_pipe(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) || fcntl(ends[0], F_SETFL, O_NONBLOCK))
        timed_fail("pipe");
}

/* Takes what is there. Whether there may be more. */
static bool take(int from)
{
    ssize_t size;

    do {
        char *more = kept_size < MOST_BYTES ? realloc(kept, kept_size + (64 << 10)) : NULL;

        if (!more)
            errno = ENOMEM, timed_fail("the results");
        kept = more;
        size = read(from, kept + kept_size, 64 << 10);
        kept_size += size > 0 ? (size_t)size : 0;
    } while (size > 0);
    return size < 0;
}

static void names_fd(int fd)
{
    char number[16];

    snprintf(number, sizeof number, "%d", fd);
    if (setenv("KDELTA_TIMED_FD", number, 1))
        timed_fail("setenv");
}

static void wake(int signal)
{
    (void)signal; /* which ends ppoll() */
}

/* Takes the lines of the program until it has ended, whatever else holds its end of the pipe; false when time is over first. */
static bool await(pid_t child, int from, uint64_t until_ns, int *status)
{
    struct pollfd results = {.fd = from, .events = POLLIN};
    sigset_t before;

    sigprocmask(SIG_SETMASK, NULL, &before);
    sigdelset(&before, SIGCHLD);
    for (;;) {
        uint64_t now = kdelta_ns(), left = until_ns > now ? until_ns - now : 0;
        struct timespec most = {.tv_sec = (time_t)(left / 1000000000), .tv_nsec = (long)(left % 1000000000)};
        pid_t ended;

        while ((ended = waitpid(-1, status, WNOHANG)) > 0) /* an init takes in orphans, too */
            if (ended == child)
                return take(from), true;
        if (!left)
            return false;
        if (ppoll(&results, 1, until_ns == UINT64_MAX ? NULL : &most, &before) > 0 && !take(from))
            results.fd = -1;
    }
}

/* Whether the program has a region of the name of the one around it. */
static bool name_is_taken(void)
{
    static const char line[] = "{\"region\":\"" KDELTA_WHOLE_PROGRAM "\",";

    return kept && memmem(kept, kept_size, line, sizeof line - 1);
}

static void chld_wakes(void)
{
    struct sigaction action = {.sa_handler = wake};
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    if (sigaction(SIGCHLD, &action, NULL) || sigprocmask(SIG_BLOCK, &set, NULL))
        timed_fail("SIGCHLD");
}

/* In the child. */
static _Noreturn void become(const struct timed *timed, int results)
{
    sigset_t none;

    sigemptyset(&none);
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(results, RESULTS_FD) < 0 || fcntl(RESULTS_FD, F_SETFD, 0)) /* it may have been that number */
        timed_fail("starting the workload");
    names_fd(RESULTS_FD);
    timed->start(timed->words);
    _exit(127);
}

int timed_run(const struct timed *timed)
{
    uint64_t until_ns = timed->seconds ? kdelta_ns() + timed->seconds * 1000000000 : UINT64_MAX;
    int ends[2], own[2], status = -1, size;
    static char line[8192];
    struct rusage used;
    char online[4096];
    bool in_time;
    pid_t child;

    put_facts(put, timed->workload, timed->path, timed->arguments, timed->folder, timed->cpu);
    make_pipe(ends);
    make_pipe(own);
    chld_wakes();
    names_fd(own[1]);
    if (timed->whole) {
        kdelta_announce(KDELTA_WHOLE_PROGRAM);
        kdelta_timed_start();
    }
    child = fork();
    if (child < 0)
        timed_fail("fork");
    if (!child)
        become(timed, ends[1]);
    close(ends[1]);
    in_time = await(child, ends[0], until_ns, &status);
    if (timed->whole)
        kdelta_end();
    if (!in_time)
        kill(child, SIGKILL);
    if (getrusage(RUSAGE_CHILDREN, &used))
        timed_fail("getrusage");
    if (timed->whole && name_is_taken())
        errno = EEXIST, timed_fail("the program has a region \"" KDELTA_WHOLE_PROGRAM "\", which is kdelta's own");
    close(own[1]);
    take(own[0]);
    put(kept, kept_size);
    snprintf(online, sizeof online, "%s", online_cpus()); /* boot_id() has the same place for its text */
    size = snprintf(line, sizeof line,
                    "{\"regions\":%lu,\"status\":%d,\"involuntary_switches\":%ld,\"online\":\"%s\",\"boot_id\":\"%s\","
                    "\"hash\":\"%016llx\"}\n",
                    lines - 1, in_time ? status : -1, used.ru_nivcsw, online, boot_id(), (unsigned long long)hash);
    put(line, (size_t)size);
    return in_time ? status : -1;
}
