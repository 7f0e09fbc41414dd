/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How the workload ends when something fails: what a compiler or make said of it goes to the host. */
#include "kbuild.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kdelta.h"
#include "kdelta_failure.h"

#define LOG_BYTES (64 << 10)

static const char *current = "start";

void tell_operation(const char *name)
{
    current = name;
}

void fail(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    kdelta_fail("kbuild", current, format, arguments);
}

long must(long result, const char *what)
{
    if (result < 0)
        fail("%s: %s", what, strerror(errno));
    return result;
}

/* The first error that a log tells of, or else its last line; all of it goes to standard error. */
void fail_with_log(const char *what, const char *log)
{
    static const char *const signs[] = {"error:", "Error", "No rule", "not found", "Cannot"};
    static char text[LOG_BYTES];
    int fd = open(log, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    const char *line = "it said nothing", *found = NULL;

    if (size > 0)
        must(write(STDERR_FILENO, text, (size_t)size), "standard error");
    for (char *next = text, *end; size > 0 && *next; next = end + 1) {
        end = next + strcspn(next, "\n");
        bool last = !*end;

        *end = '\0';
        if (*next)
            line = next;
        for (size_t i = 0; !found && i < sizeof signs / sizeof *signs; i++)
            if (strstr(next, signs[i]))
                found = next;
        if (last)
            break;
    }
    fail("%s: %.600s", what, found ? found : line);
}
