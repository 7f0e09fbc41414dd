/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Small things that several parts need. */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_SECOND 1000000000

/* Reads at most size - 1 bytes and ends them with NUL; an unreadable file is empty. */
size_t read_file(const char *path, char *text, size_t size)
{
    size_t used = 0;
    ssize_t got;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        while (used < size - 1 && (got = read(fd, text + used, size - 1 - used)) > 0)
            used += (size_t)got;
        close(fd);
    }
    text[used] = '\0';
    return used;
}

bool write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd >= 0)
        close(fd);
    return good;
}

int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

void sleep_until_ns(int64_t monotonic_ns)
{
    struct timespec until = {.tv_sec = monotonic_ns / NS_PER_SECOND, .tv_nsec = monotonic_ns % NS_PER_SECOND};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}
