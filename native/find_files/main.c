/* SPDX-License-Identifier: GPL-2.0-or-later */
/* find_files COMMAND ARGS...: runs a command in a guest, and has the host bring each file that it asks for, just before the kernel
 * looks for it. While the host answers, no time passes in the guest.
 *
 * A filter stops the command, and all that it starts, at the system calls that take a name. A kernel without filters stops it at each
 * call. PTRACE_GET_SYSCALL_INFO, which is the same on all architectures, came with Linux 5.3.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64 /* addresses of a 32-bit task's memory, too */
#include "find_files.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../agent/cpio.h"
#include "kdelta.h"

#define SYSCALL_STOP (SIGTRAP | 0x80)
#define OPTIONS \
    (PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | \
     PTRACE_O_TRACESECCOMP)

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#elif defined(__arm__)
#define NATIVE AUDIT_ARCH_ARM
#elif defined(__riscv) && __riscv_xlen == 64
#define NATIVE AUDIT_ARCH_RISCV64
#endif

static bool has_filters;

void give_up(const char *format, ...)
{
    char text[CPIO_PATH_MAX + 256] = "not-found\n";
    size_t used = strlen(text);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text + used, sizeof text - used, format, arguments);
    va_end(arguments);
    kdelta_message(text, strlen(text));
    exit(125);
}

/* Stops this process and its children at the calls of the table. */
static void filter(void)
{
    struct sock_filter code[4 + 2 * 128], *next = code;
    struct sock_fprog program = {.filter = code};

    *next++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    *next++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 1, 0);
    *next++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    *next++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < n_calls; i++) {
        *next++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i].number, 0, 1);
        *next++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
    }
    *next++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    program.len = (unsigned short)(next - code);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        _exit(125);
}

static bool read_string(pid_t task, uint64_t address, char *text, size_t size)
{
    char memory[64];
    size_t used = 0;
    int fd;

    snprintf(memory, sizeof memory, "/proc/%d/mem", task);
    fd = open(memory, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && used < size) {
        /* no further than the page's end, since the next one may not be there */
        size_t part = 4096 - (address + used) % 4096;
        ssize_t got = pread(fd, text + used, part < size - used ? part : size - used, (off_t)(address + used));

        if (got <= 0)
            break;
        if (memchr(text + used, '\0', (size_t)got)) {
            close(fd);
            return true;
        }
        used += (size_t)got;
    }
    if (fd >= 0)
        close(fd);
    return false;
}

/* The path of a folder that a task has open, or works in. */
static bool folder_path(pid_t task, int fd, char *path, size_t size)
{
    char link[64];
    ssize_t got;

    if (fd == AT_FDCWD)
        snprintf(link, sizeof link, "/proc/%d/cwd", task);
    else
        snprintf(link, sizeof link, "/proc/%d/fd/%d", task, fd);
    got = readlink(link, path, size - 1);
    if (got <= 0 || *path != '/')
        return false;
    path[got] = '\0';
    return true;
}

/* Without double slashes, and parts that are a dot. Parts that are two dots stay, since links may stand before them. */
static void tidy(char *path)
{
    char *out = path;

    for (const char *part = path; *part;) {
        size_t size;

        part += strspn(part, "/");
        size = strcspn(part, "/");
        if (size && !(size == 1 && *part == '.')) {
            *out++ = '/';
            memmove(out, part, size);
            out += size;
        }
        part += size;
    }
    if (out == path)
        *out++ = '/';
    *out = '\0';
}

static void handle(pid_t task, const struct call *call, const uint64_t *arguments)
{
    char path[2 * CPIO_PATH_MAX] = "", name[CPIO_PATH_MAX];
    size_t used;

    if (call->need == LISTING) {
        if (folder_path(task, (int)arguments[0], path, CPIO_PATH_MAX))
            name_needed(path, LISTING);
        return;
    }
    if (!read_string(task, arguments[call->name], name, sizeof name) || !*name)
        return;
    if (*name != '/' && !folder_path(task, folder_of(call, arguments), path, CPIO_PATH_MAX))
        return;
    used = strlen(path);
    snprintf(path + used, sizeof path - used, "/%s", name);
    tidy(path);
    if (strlen(path) < CPIO_PATH_MAX)
        name_needed(path, need_of(call, arguments));
}

static void look(pid_t task)
{
    struct __ptrace_syscall_info info;
    const uint64_t *arguments;
    uint64_t number;

    if (ptrace(PTRACE_GET_SYSCALL_INFO, task, sizeof info, &info) < 0) {
        if (errno == EIO || errno == EINVAL)
            give_up("this kernel lacks PTRACE_GET_SYSCALL_INFO, which came with 5.3");
        return; /* it was killed */
    }
    if (info.arch != NATIVE || (info.op != PTRACE_SYSCALL_INFO_ENTRY && info.op != PTRACE_SYSCALL_INFO_SECCOMP))
        return;
    number = info.op == PTRACE_SYSCALL_INFO_ENTRY ? info.entry.nr : info.seccomp.nr;
    arguments = info.op == PTRACE_SYSCALL_INFO_ENTRY ? info.entry.args : info.seccomp.args;
    for (size_t i = 0; i < n_calls; i++)
        if ((uint64_t)calls[i].number == number)
            handle(task, &calls[i], arguments);
}

static void go_on(pid_t task, int status)
{
    int event = status >> 16, number = WSTOPSIG(status);
    bool by_call = !event && number == SYSCALL_STOP;

    if (event == PTRACE_EVENT_SECCOMP || by_call)
        look(task);
    if (event == PTRACE_EVENT_STOP && number != SIGTRAP)
        ptrace(PTRACE_LISTEN, task, 0, 0);
    else
        ptrace(has_filters ? PTRACE_CONT : PTRACE_SYSCALL, task, 0, event || by_call ? 0 : number);
}

/* In the child, which waits until it is traced. */
static _Noreturn void start(int traced, char **argv)
{
    char byte;

    while (read(traced, &byte, 1) < 0 && errno == EINTR)
        ;
    close(traced);
    if (has_filters)
        filter();
    execv(argv[0], argv);
    dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

static int follow(pid_t child)
{
    for (;;) {
        int status;
        pid_t task = waitpid(-1, &status, __WALL);

        if (task < 0)
            give_up("the command was lost: %s", strerror(errno));
        if (WIFSTOPPED(status))
            go_on(task, status);
        else if (task == child)
            return status;
    }
}

int main(int argc, char **argv)
{
    int traced[2], status;
    pid_t child;

    if (argc < 2 || pipe2(traced, O_CLOEXEC))
        give_up("no command");
    /* A filter that is not there is refused by its address if the kernel knows filters. */
    has_filters = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) && errno == EFAULT;
    child = fork();
    if (!child) {
        close(traced[1]);
        start(traced[0], argv + 1);
    }
    if (child < 0 || ptrace(PTRACE_SEIZE, child, 0, OPTIONS))
        give_up("the command cannot be traced: %s", strerror(errno));
    if (!has_filters)
        ptrace(PTRACE_INTERRUPT, child, 0, 0);
    close(traced[0]);
    close(traced[1]);
    status = follow(child);
    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    return WEXITSTATUS(status);
}
