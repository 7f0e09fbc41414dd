/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Open files: the CPUs have the same descriptor, the same file by descriptors of their own, or a file each. */
#include "pairs.h"

#include <fcntl.h>

static void open_own(unsigned cpu)
{
    sides[cpu].fd = opened(open(sides[cpu].file, O_RDWR | O_CLOEXEC));
}

static void open_one(long unused)
{
    (void)unused;
    choose_files(SAME);
    open_own(0);
    sides[1].fd = sides[0].fd;
}

static void step_fstat(unsigned cpu)
{
    must(syscall(SYS_newfstatat, sides[cpu].fd, "", &sides[cpu].facts, AT_EMPTY_PATH));
}

static void step_lseek(unsigned cpu)
{
    must(syscall(SYS_lseek, sides[cpu].fd, 0l, SEEK_SET));
}

/* The file's first page. */
static void step_pread(unsigned cpu)
{
    must(syscall(SYS_pread64, sides[cpu].fd, sides[cpu].buffer, PAGE_BYTES, 0l));
}

/* A page of each CPU's own. */
static void step_pwrite(unsigned cpu)
{
    must(syscall(SYS_pwrite64, sides[cpu].fd, sides[cpu].buffer, PAGE_BYTES, sides[cpu].offset));
}

static void step_dup_close(unsigned cpu)
{
    long fd = must(syscall(SYS_dup, sides[cpu].fd));

    must(syscall(SYS_close, fd));
}

#define ONE_DESCRIPTOR .threads = true, .setup = open_one
#define BY_OWN_DESCRIPTORS(object) .setup = choose_files, .prepare = open_own, .argument = object

const struct pair descriptor_pairs[] = {
    {"fstat-same-descriptor", .iterations = 1500, .step = step_fstat, ONE_DESCRIPTOR},
    {"fstat-two-descriptors", .threads = true, .iterations = 1500, .step = step_fstat, BY_OWN_DESCRIPTORS(OWN)},
    {"lseek-same-descriptor", .iterations = 3000, .step = step_lseek, ONE_DESCRIPTOR},
    {"pread-same-descriptor", .iterations = 1000, .step = step_pread, ONE_DESCRIPTOR},
    {"pread-same-file", .iterations = 1000, .step = step_pread, BY_OWN_DESCRIPTORS(SAME)},
    {"pread-two-files", .iterations = 1000, .step = step_pread, BY_OWN_DESCRIPTORS(OWN)},
    {"pwrite-same-file", .iterations = 800, .step = step_pwrite, BY_OWN_DESCRIPTORS(SAME)},
    {"pwrite-two-files", .iterations = 800, .step = step_pwrite, BY_OWN_DESCRIPTORS(OWN)},
    {"dup-close-threads", .threads = true, .iterations = 1500, .step = step_dup_close, BY_OWN_DESCRIPTORS(OWN)},
    {"dup-close-processes", .iterations = 1500, .step = step_dup_close, BY_OWN_DESCRIPTORS(OWN)},
    {0},
};
