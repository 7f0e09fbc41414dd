/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Children: of fork, vfork and posix_spawn; and another program. */
#include "calling.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int end_of(pid_t child)
{
    int status;

    EXPECT(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

void case_fork(void)
{
    pid_t self = getpid();

    for (int i = 0; i < 100; i++) {
        pid_t child = fork();

        if (!child)
            _exit(getppid() == self && getpid() != self ? i : 255);
        EXPECT(end_of(child) == i);
    }
}

void case_vfork(void)
{
    char *argv[] = {"sh", "-c", "exit 7", NULL};

    for (volatile int i = 0; i < 20; i++) {
        volatile pid_t child = vfork();

        if (!child)
            _exit(i);
        EXPECT(end_of(child) == i);
        child = vfork();
        if (!child) {
            execve("/bin/sh", argv, environ);
            _exit(255);
        }
        EXPECT(end_of(child) == 7);
    }
}

void case_spawn(void)
{
    char *argv[] = {"sh", "-c", "exit 5", NULL};
    pid_t child;

    for (int i = 0; i < 20; i++) {
        EXPECT(posix_spawn(&child, "/bin/sh", NULL, NULL, argv, environ) == 0);
        EXPECT(end_of(child) == 5);
    }
    EXPECT(system("exit 6") >> 8 == 6);
    FILE *shell = popen("echo $PPID", "r");
    int parent = 0;

    EXPECT(shell && fscanf(shell, "%d", &parent) == 1 && parent == getpid() && pclose(shell) == 0);
}

/* A program with an environment of its own, which says what it was given. */
void case_own_environment(void)
{
    char *argv[] = {"sh", "-c", "echo $OWN $KDELTA_CALL", NULL};
    char *own[] = {"OWN=yes", NULL};

    execve("/bin/sh", argv, own);
    EXPECT(!"execve() comes back");
}

/* This program again, which does another case. */
void case_exec(void)
{
    char *argv[] = {"calling", "registers", NULL};

    execve("/proc/self/exe", argv, environ);
    EXPECT(!"execve() comes back");
}
