/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mapping, protecting and touching memory, in one address space or in two, and pages of files. */
#include "pairs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#define MAP_BYTES (64 * 1024l)
#define TABLE_BYTES (2 * 1024 * 1024l) /* what a page of page tables maps */
#define NEW_BYTES (16 * TABLE_BYTES)

static char *map(size_t bytes, int protection, int flags, int fd)
{
    char *area = mmap(NULL, bytes, protection, flags, fd, 0);

    if (area == MAP_FAILED)
        fail("mmap");
    return area;
}

/* A page between two that may not be accessed, so that the kernel never joins the CPUs' areas. */
static void own_page(unsigned cpu)
{
    struct side *side = &sides[cpu];

    side->area_bytes = 3 * PAGE_BYTES;
    side->area_start = map(side->area_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    side->area = side->area_start + PAGE_BYTES;
    must(mprotect((void *)side->area, PAGE_BYTES, PROT_READ | PROT_WRITE));
    side->area[0] = 1;
}

/* Pages that were never written, mapped by page tables of the CPU's own, with a gap around them as above. */
static void new_pages(unsigned cpu)
{
    struct side *side = &sides[cpu];

    side->area_bytes = NEW_BYTES + 2 * TABLE_BYTES;
    side->area_start = map(side->area_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    side->area = (char *)(((uintptr_t)side->area_start + TABLE_BYTES) / TABLE_BYTES * TABLE_BYTES);
    must(mprotect((void *)side->area, NEW_BYTES, PROT_READ | PROT_WRITE));
    must(madvise((void *)side->area, NEW_BYTES, MADV_NOHUGEPAGE));
    side->offset = 0;
}

static void page_of_file(unsigned cpu)
{
    struct side *side = &sides[cpu];
    int fd = opened(open(side->file, O_RDWR | O_CLOEXEC));

    side->area_bytes = PAGE_BYTES;
    side->area_start = map(PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    side->area = side->area_start;
    side->area[0] = 1;
}

static void step_map(unsigned cpu)
{
    (void)cpu;
    must(munmap(map(MAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1), MAP_BYTES));
}

static void step_map_touch(unsigned cpu)
{
    volatile char *area = map(PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

    (void)cpu;
    area[0] = 1;
    must(munmap((void *)area, PAGE_BYTES));
}

static void step_fault(unsigned cpu)
{
    must(madvise((void *)sides[cpu].area, PAGE_BYTES, MADV_DONTNEED));
    sides[cpu].area[0] = 1;
}

static void step_write_new(unsigned cpu)
{
    struct side *side = &sides[cpu];

    if (side->offset == NEW_BYTES) {
        errno = ENOMEM;
        fail("no page is left that was not written");
    }
    side->area[side->offset] = 1;
    side->offset += PAGE_BYTES;
}

static void step_protect(unsigned cpu)
{
    must(mprotect((void *)sides[cpu].area, PAGE_BYTES, PROT_READ));
    must(mprotect((void *)sides[cpu].area, PAGE_BYTES, PROT_READ | PROT_WRITE));
}

#define THREADS_AND_PROCESSES(name, n, ...) \
    {name "-threads", .threads = true, .iterations = n, __VA_ARGS__}, \
    {name "-processes", .iterations = n, __VA_ARGS__}

const struct pair memory_pairs[] = {
    THREADS_AND_PROCESSES("mmap-munmap", 150, .warm_up = 800, .step = step_map),
    THREADS_AND_PROCESSES("mmap-touch", 80, .warm_up = 400, .step = step_map_touch),
    THREADS_AND_PROCESSES("page-fault", 200, .prepare = own_page, .step = step_fault),
    THREADS_AND_PROCESSES("page-fault-new", 500, .warm_up = 2000, .prepare = new_pages, .step = step_write_new),
    {"page-fault-same-file", .iterations = 300, .setup = choose_files, .prepare = page_of_file, .step = step_fault, .argument = SAME},
    {"page-fault-two-files", .iterations = 300, .setup = choose_files, .prepare = page_of_file, .step = step_fault, .argument = OWN},
    THREADS_AND_PROCESSES("mprotect", 250, .prepare = own_page, .step = step_protect),
    {0},
};
