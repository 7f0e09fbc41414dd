/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cipher in user space as the kernel's flags compile it: another program, built for the kernel that runs. */
#include "bench.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOT_STARTED 127

static char path[256];

static bool setup(const char *name)
{
    snprintf(path, sizeof path, "%s-kflags", lab.program);
    return !access(path, X_OK) || left_out(name, "it could not be built for this kernel");
}

static void measure(const char *name)
{
    char start[32], settle[32], iterations[32];
    int status;
    pid_t child;

    snprintf(start, sizeof start, "%llu", (unsigned long long)lab.start_ticks);
    snprintf(settle, sizeof settle, "%lu", lab.settle_seconds);
    snprintf(iterations, sizeof iterations, "%lu", loop_counts[1]);
    child = fork();
    if (!child) {
        execl(path, path, "--start", start, "--settle", settle, "--iterations", iterations, lab.clock ? "--clock" : name,
              lab.clock ? name : NULL, NULL);
        _exit(NOT_STARTED);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        fail(path);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_STARTED)
        errno = ENOEXEC, fail(path);
    if (status)
        _exit(1); /* it has said why */
}

const struct operation flags_operations[] = {
    {"user-kflags-encrypt", setup, measure, NULL},
    {"user-kflags-decrypt", setup, measure, NULL},
    {0},
};
