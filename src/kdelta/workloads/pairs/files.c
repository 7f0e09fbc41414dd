/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files by their paths, folders and locks: the CPUs have the same one, or one each in folders of their own. */
#include "pairs.h"

#include <fcntl.h>

static void step_stat(unsigned cpu)
{
    must(syscall(SYS_newfstatat, AT_FDCWD, sides[cpu].file, &sides[cpu].facts, 0));
}

static void step_open_close(unsigned cpu)
{
    long fd = must(syscall(SYS_openat, AT_FDCWD, sides[cpu].file, O_RDONLY, 0));

    must(syscall(SYS_close, fd));
}

static void step_create_unlink(unsigned cpu)
{
    long fd = must(syscall(SYS_openat, AT_FDCWD, sides[cpu].name, O_WRONLY | O_CREAT | O_EXCL, 0600));

    must(syscall(SYS_close, fd));
    must(syscall(SYS_unlinkat, AT_FDCWD, sides[cpu].name, 0));
}

static void open_folder(unsigned cpu)
{
    sides[cpu].fd = opened(open(sides[cpu].folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

static void step_readdir(unsigned cpu)
{
    struct side *side = &sides[cpu];

    must(syscall(SYS_lseek, side->fd, 0l, SEEK_SET));
    must(syscall(SYS_getdents64, side->fd, side->buffer, sizeof side->buffer));
}

static void open_file(unsigned cpu)
{
    sides[cpu].fd = opened(open(sides[cpu].file, O_RDWR | O_CLOEXEC));
}

/* Of a byte of each CPU's own, so that no lock is in the other's way. */
static void step_lock(unsigned cpu)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = sides[cpu].offset, .l_len = 1};

    must(syscall(SYS_fcntl, sides[cpu].fd, F_SETLKW, &lock));
    lock.l_type = F_UNLCK;
    must(syscall(SYS_fcntl, sides[cpu].fd, F_SETLK, &lock));
}

#define SAME_AND_OWN(name, same, own, n, ...) \
    {name "-" same, .iterations = n, .setup = choose_files, .argument = SAME, __VA_ARGS__}, \
    {name "-" own, .iterations = n, .setup = choose_files, .argument = OWN, __VA_ARGS__}

const struct pair file_pairs[] = {
    SAME_AND_OWN("stat", "same-file", "two-files", 400, .step = step_stat),
    SAME_AND_OWN("open-close", "same-file", "two-files", 250, .warm_up = 1000, .step = step_open_close),
    SAME_AND_OWN("create-unlink", "same-folder", "two-folders", 80, .warm_up = 400, .step = step_create_unlink),
    SAME_AND_OWN("readdir", "same-folder", "two-folders", 300, .prepare = open_folder, .step = step_readdir),
    SAME_AND_OWN("lock", "same-file", "two-files", 400, .prepare = open_file, .step = step_lock),
    {0},
};
