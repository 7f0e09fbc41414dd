/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs a program in the guest whose terminal is the serial line, for `kdelta shell`:
 *
 *   terminal DEVICE ROWS COLUMNS INPUT FORM PROGRAM ARGS...
 *
 * INPUT is a file that takes the terminal's place as standard input, or - for the terminal. FORM is "terminal", or "plain": what is
 * printed then reaches the host byte for byte. The exit code is the program's, or 128 and the number of the signal that killed it.
 *
 * It leads the session until the program has ended: when a session's leader ends, the kernel drops what its terminal has not sent yet.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "kdelta.h"
#include "kdelta_handover.h"

/* Commands to the terminal that it does not know, and so does not show: src/kdelta/machines/terminal.py looks for them. */
#define BEGIN "\033]kdelta;begin\007"
#define END   "\033]kdelta;end\007"

#define CANNOT_RUN 127
#define BY_SIGNAL  128

__attribute__((format(printf, 1, 2))) static _Noreturn void fail(const char *format, ...)
{
    char text[512] = "failure\n";
    size_t size = strlen(text);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text + size, sizeof text - size, format, arguments);
    va_end(arguments);
    kdelta_message(text, strlen(text));
    exit(CANNOT_RUN);
}

/* The serial line as the session's terminal, as a login gets it. */
static int terminal_open(const char *device, const char *rows, const char *columns)
{
    struct winsize size = {.ws_row = (unsigned short)atoi(rows), .ws_col = (unsigned short)atoi(columns)};
    int fd;

    setsid();
    fd = open(device, O_RDWR | O_NOCTTY | O_NONBLOCK); /* no wait for a carrier */
    if (fd < 0)
        fail("cannot open %s: %s", device, strerror(errno));
    fcntl(fd, F_SETFL, O_RDWR);
    if (ioctl(fd, TIOCSCTTY, 1))
        fail("cannot make %s the terminal: %s", device, strerror(errno));
    ioctl(fd, TIOCSWINSZ, &size);
    return fd;
}

static void terminal_set(int fd, bool plain, bool typed)
{
    struct termios set;

    if (tcgetattr(fd, &set))
        fail("the serial line is no terminal: %s", strerror(errno));
    set.c_iflag = BRKINT | ICRNL | IMAXBEL | IUTF8;
    set.c_oflag = plain ? 0 : OPOST | ONLCR;
    set.c_cflag |= CREAD | CLOCAL | HUPCL;
    set.c_lflag = ISIG | ICANON | IEXTEN;
    if (typed)
        set.c_lflag |= ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE;
    tcsetattr(fd, TCSANOW, &set);
}

static void put(int fd, const char *text)
{
    if (write(fd, text, strlen(text)) < 0 || tcdrain(fd))
        fail("cannot write to the serial line: %s", strerror(errno));
}

/* In a process group of its own, in the foreground, which gets the signals that are typed. */
static _Noreturn void start(int fd, const char *input, char **argv)
{
    int from = strcmp(input, "-") ? open(input, O_RDONLY) : fd;

    setpgid(0, 0);
    tcsetpgrp(fd, getpgrp());
    signal(SIGTTOU, SIG_DFL);
    if (from < 0)
        dprintf(fd, "cannot open %s: %s\r\n", input, strerror(errno));
    else if (dup2(from, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
        dprintf(fd, "cannot use the terminal: %s\r\n", strerror(errno));
    else {
        closefrom(STDERR_FILENO + 1);
        execv(argv[0], argv);
        dprintf(STDERR_FILENO, "cannot run %s: %s\r\n", argv[0], strerror(errno));
    }
    _exit(CANNOT_RUN);
}

/* How it ended, as an exit code. One that was stopped goes on: no shell is there to continue it. */
static int await(pid_t child)
{
    int status = 0;

    while (waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status))
        kill(-child, SIGCONT);
    return WIFSIGNALED(status) ? BY_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
    bool plain;
    pid_t child;
    int fd, code;

    if (argc < 7) {
        fputs("terminal: a part of kdelta shell, for its guests\n", stderr);
        return CANNOT_RUN;
    }
    kdelta_snapshot();
    signal(SIGTTOU, SIG_IGN);
    plain = !strcmp(argv[5], "plain");
    fd = terminal_open(argv[1], argv[2], argv[3]);
    terminal_set(fd, plain, !strcmp(argv[4], "-"));
    put(fd, BEGIN);
    child = fork();
    if (child < 0)
        fail("cannot start a process: %s", strerror(errno));
    if (!child)
        start(fd, argv[4], argv + 6);
    code = await(child);
    tcsetpgrp(fd, getpgrp());
    put(fd, END);
    return code;
}
