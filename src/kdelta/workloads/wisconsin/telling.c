/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How the workload ends when something fails, and what a log says last. */
#include "wisconsin.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kdelta.h"
#include "kdelta_failure.h"

#define LOG_BYTES (64 << 10)
#define LAST_LINES 4

static const char *current = "start";

void tell_operation(const char *name)
{
    current = name;
}

void fail(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    kdelta_fail("wisconsin", current, format, arguments);
}

long must(long result, const char *what)
{
    if (result < 0)
        fail("%s: %s", what, strerror(errno));
    return result;
}

/* The last lines of a file that say something, in one; all of it goes to standard error. */
void last_lines(const char *path, char *text, size_t room)
{
    static char log[LOG_BYTES];
    const char *lines[LAST_LINES] = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    off_t end = fd < 0 ? 0 : lseek(fd, 0, SEEK_END), from = end < LOG_BYTES ? 0 : end - LOG_BYTES + 1;
    ssize_t size = fd < 0 ? 0 : pread(fd, log, sizeof log - 1, from);
    size_t used = 0;

    snprintf(text, room, "it said nothing");
    if (fd >= 0)
        close(fd);
    if (size <= 0)
        return;
    must(write(STDERR_FILENO, log, (size_t)size), "standard error");
    for (char *line, *next = log; (line = strsep(&next, "\n"));)
        if (*line) {
            memmove(lines, lines + 1, sizeof lines - sizeof *lines);
            lines[LAST_LINES - 1] = line;
        }
    for (size_t i = 0; i < LAST_LINES; i++)
        if (lines[i] && used < room)
            used += (size_t)snprintf(text + used, room - used, "%s%.300s", used ? " / " : "", lines[i]);
}
