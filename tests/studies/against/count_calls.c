/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs a program and counts the system calls that it and its children enter, by number, as the kernel reports them to a tracer. */
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <linux/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define NUMBERS 1024
#define OPTIONS (PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | \
                 PTRACE_O_EXITKILL)
#define AT_CALL (SIGTRAP | 0x80)

static unsigned long counts[NUMBERS];

static void entered(pid_t task)
{
    struct ptrace_syscall_info info;

    if (ptrace(PTRACE_GET_SYSCALL_INFO, task, sizeof info, &info) > 0 && info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr < NUMBERS)
        counts[info.entry.nr]++;
}

int main(int argc, char **argv)
{
    pid_t task = argc > 1 ? fork() : -1;
    int status;

    if (!task) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        execv(argv[1], argv + 1);
        _exit(127);
    }
    if (task < 0 || waitpid(task, &status, 0) != task || ptrace(PTRACE_SETOPTIONS, task, 0, OPTIONS))
        return 1;
    ptrace(PTRACE_SYSCALL, task, 0, 0);
    while ((task = waitpid(-1, &status, __WALL)) > 0) {
        int signal = 0;

        if (!WIFSTOPPED(status))
            continue;
        if (WSTOPSIG(status) == AT_CALL)
            entered(task);
        else if (WSTOPSIG(status) != SIGTRAP && WSTOPSIG(status) != SIGSTOP)
            signal = WSTOPSIG(status);
        ptrace(PTRACE_SYSCALL, task, 0, signal);
    }
    for (unsigned i = 0; i < NUMBERS; i++)
        if (counts[i])
            fprintf(stderr, "%u %lu\n", i, counts[i]);
    return 0;
}
