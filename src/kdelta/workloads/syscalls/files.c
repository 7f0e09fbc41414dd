/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files: opening, asking about, reading and writing them. Data goes at the file's start each time. */
#include "bench.h"

#include <fcntl.h>
#include <string.h>

static int fd;
static size_t size;
static facts_of_file facts;
static char buffer[64 * KIB] __attribute__((aligned(4096)));

static bool open_as(const char *path, int flags, long bytes)
{
    fd = (int)must(open(path, flags | O_CLOEXEC));
    size = (size_t)bytes;
    memset(buffer, 1, sizeof buffer);
    return true;
}

static bool open_file(long bytes)
{
    return open_as(file_path, O_RDWR, bytes);
}

static bool open_zero(long bytes)
{
    return open_as("/dev/zero", O_RDONLY, bytes);
}

static bool open_null(long bytes)
{
    return open_as("/dev/null", O_WRONLY, bytes);
}

static void close_it(void)
{
    must(close(fd));
}

static void step_open_close(void)
{
    long opened = must(syscall(SYS_openat, AT_FDCWD, file_path, O_RDONLY, 0));

    must(syscall(SYS_close, opened));
}

static void step_stat(void)
{
    must(syscall(SYS_newfstatat, AT_FDCWD, file_path, &facts, 0));
}

static void step_fstat(void)
{
    must(syscall(SYS_newfstat, fd, &facts));
}

static void step_pread(void)
{
    must(syscall(SYS_pread64, fd, buffer, size, OFFSET_0));
}

static void step_pwrite(void)
{
    must(syscall(SYS_pwrite64, fd, buffer, size, OFFSET_0));
}

static void step_read(void)
{
    must(syscall(SYS_read, fd, buffer, size));
}

static void step_write(void)
{
    must(syscall(SYS_write, fd, buffer, size));
}

#define BY_SIZE(name, n, ...) \
    {name "-1b", n, __VA_ARGS__, .teardown = close_it, .argument = 1}, \
    {name "-4k", n, __VA_ARGS__, .teardown = close_it, .argument = 4 * KIB}, \
    {name "-64k", n / 4, __VA_ARGS__, .teardown = close_it, .argument = 64 * KIB}

const struct operation file_operations[] = {
    {"open-close", 1000, 20, .step = step_open_close},
    {"stat", 1000, .step = step_stat},
    {"fstat", 4000, .step = step_fstat, .setup = open_file, .teardown = close_it},
    BY_SIZE("read-tmpfs", 400, .step = step_pread, .setup = open_file),
    BY_SIZE("write-tmpfs", 400, .step = step_pwrite, .setup = open_file),
    BY_SIZE("read-zero", 400, .step = step_read, .setup = open_zero),
    BY_SIZE("write-null", 400, .step = step_write, .setup = open_null),
    {0},
};
