/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs the job's program, and tells how it ended. */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kdelta_clock.h"

#define NS_PER_SECOND 1000000000
/* The program starts at a multiple of this, so that how long it took to load moves neither ticks nor periodic work; at least a
 * second later, since what loading left to be done later is done then. Waiting is free. */
#define START_GRID_NS (10ll * NS_PER_SECOND)
#define SETTLE_NS (1ll * NS_PER_SECOND)

#define STDOUT_FILE OUTPUT_FOLDER "/stdout"
#define STDERR_FILE OUTPUT_FOLDER "/stderr"
#define OUTPUT_LIMIT_BYTES (64 << 10)

/* What the child tells: when its region began, and why it could not start the program. */
struct child {
    uint64_t began_ticks;
    int error;
    bool in_cwd;
};

static void redirect(const char *path, int flags, int to)
{
    int fd = open(path, flags, 0644);

    if (fd < 0 || dup2(fd, to) < 0)
        _exit(127);
    if (fd != to)
        close(fd);
}

/* In the child. The parent already waits when the start time comes, so nothing else is about to run. */
static _Noreturn void start(const struct job *job, int64_t start_ns, volatile struct child *told)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    group_join();
    perturb_group(job);
    redirect("/dev/null", O_RDONLY, STDIN_FILENO);
    redirect(STDOUT_FILE, O_WRONLY | O_CREAT | O_APPEND, STDOUT_FILENO);
    redirect(STDERR_FILE, O_WRONLY | O_CREAT | O_APPEND, STDERR_FILENO);
    if (chdir(job->cwd)) {
        told->error = errno;
        told->in_cwd = true;
        _exit(127);
    }
    prctl(PR_SET_TIMERSLACK, 1);
    sleep_until_ns(start_ns);
    kdelta_clock_align(job->phase_ns);
    prctl(PR_SET_TIMERSLACK, 0); /* the default */
    kdelta_arm();
    if (job->region) {
        told->began_ticks = 0; /* its page is there before the region begins */
        kdelta_announce(job->region);
        told->began_ticks = kdelta_clock_begin();
    }
    execve(job->argv[0], job->argv, job->env);
    told->error = errno;
    if (job->region)
        kdelta_end();
    _exit(127);
}

/* Waits for the child, and takes in orphans meanwhile; false when time is up first. used: what it and those that it waited for used. */
static bool await(pid_t child, int64_t deadline_ns, int *status, struct rusage *used)
{
    sigset_t children;

    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    for (;;) {
        struct timespec left;
        int64_t left_ns = deadline_ns - now_ns();
        pid_t ended;

        while ((ended = wait4(-1, status, WNOHANG, used)) > 0)
            if (ended == child)
                return true;
        if (left_ns <= 0)
            return false;
        left = (struct timespec){.tv_sec = left_ns / NS_PER_SECOND, .tv_nsec = left_ns % NS_PER_SECOND};
        sigtimedwait(&children, NULL, &left); /* a child that ended since the look above is pending, and ends this at once */
    }
}

static void output(const char *type, const char *path)
{
    message_start(type);
    message_file(path, OUTPUT_LIMIT_BYTES);
    message_end();
}

/* Whether the program's output filled its file system, so that writes failed: most programs do not look whether they did. */
static bool output_full(void)
{
    struct statvfs state;

    return !statvfs(OUTPUT_FOLDER, &state) && !state.f_bavail;
}

static void tell(const struct job *job, const struct child *told, bool in_time, int status)
{
    const char *full = output_full() ? ", with more output than a guest has room for" : "";

    if (told->error == ENOEXEC && job->mode)
        finish("mode %s: %s is no program that can run so: it must be a 64-bit one", job->mode, job->argv[0]);
    if (told->error)
        finish("missing %s: %s", told->in_cwd ? job->cwd : job->argv[0], strerror(told->error));
    if (!in_time)
        finish("timeout");
    if (WIFSIGNALED(status)) {
        const char *name = sigabbrev_np(WTERMSIG(status));

        finish("signal %d SIG%s%s", WTERMSIG(status), name ? name : "RT", full);
    }
    finish("exit %d%s", WEXITSTATUS(status), full);
}

static void clock_tell(const struct job *job, uint64_t began_ticks, uint64_t ended_ticks)
{
    if (!kdelta_clock_counts())
        return;
    message("region-clock", "%s %llu %llu", job->region, (unsigned long long)(ended_ticks - began_ticks),
            (unsigned long long)kdelta_clock_overhead());
}

void run(const struct job *job)
{
    struct child *told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int64_t start_ns, deadline_ns;
    bool in_time;
    int status = 0;
    struct rusage used;
    pid_t child;
    sigset_t children;

    if (job->region) /* any program: a workload warms up what it measures */
        network_first_use();
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_BLOCK, &children, NULL);
    start_ns = ((now_ns() + SETTLE_NS) / START_GRID_NS + 1) * START_GRID_NS + (int64_t)job->phase_ns;
    deadline_ns = job->seconds ? start_ns + (int64_t)job->seconds * NS_PER_SECOND : INT64_MAX;

    if (!kdelta_clock_is_exact())
        message("warning", "this kernel shows no exact clock (CONFIG_DEVMEM): programs start some instructions sooner or later\n");
    child = told == MAP_FAILED ? -1 : fork();
    if (child < 0)
        finish("agent cannot start a process: %s", strerror(errno));
    if (!child)
        start(job, start_ns, told);
    in_time = await(child, deadline_ns, &status, &used);
    if (job->region)
        clock_tell(job, told->began_ticks, kdelta_clock_end());
    kill(-1, SIGKILL); /* whatever it left behind: everything but init */
    while (wait(NULL) > 0)
        ;
    holes_tell(job->holes);
    if (in_time)
        message("memory", "%ld\n", used.ru_maxrss);
    output("stdout", STDOUT_FILE);
    output("stderr", STDERR_FILE);
    tell(job, told, in_time, status);
    abort();
}
