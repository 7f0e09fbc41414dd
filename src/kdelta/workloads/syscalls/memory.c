/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory: mapping it, and touching it for the first time. */
#include "bench.h"

#include <sys/mman.h>

#define FAULT_PAGES 2048 /* as many as the longest region has iterations */

static size_t map_bytes;
static volatile char *fault_area;
static unsigned fault_next;

static char *map(size_t bytes, int flags)
{
    return (char *)must((long)mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0));
}

static bool set_size(long bytes)
{
    map_bytes = (size_t)bytes;
    return true;
}

static void step_map(void)
{
    must(munmap(map(map_bytes, MAP_PRIVATE), map_bytes));
}

static void step_map_touch(void)
{
    volatile char *area = map(map_bytes, MAP_PRIVATE);

    for (size_t i = 0; i < map_bytes; i += PAGE_BYTES)
        area[i] = 1;
    must(munmap((void *)area, map_bytes));
}

/* Pages of a shared mapping that exist but are not in the page table any more: a write faults and allocates nothing. */
static void fault_ready(void)
{
    must(madvise((void *)fault_area, FAULT_PAGES * PAGE_BYTES, MADV_DONTNEED));
    fault_next = 0;
}

static bool fault_setup(long unused)
{
    (void)unused;
    fault_area = map(FAULT_PAGES * PAGE_BYTES, MAP_SHARED);
    for (size_t i = 0; i < FAULT_PAGES * PAGE_BYTES; i += PAGE_BYTES)
        fault_area[i] = 1;
    fault_ready();
    return true;
}

static void step_fault(void)
{
    fault_area[fault_next++ % FAULT_PAGES * PAGE_BYTES] = 1;
}

static void fault_teardown(void)
{
    must(munmap((void *)fault_area, FAULT_PAGES * PAGE_BYTES));
}

const struct operation memory_operations[] = {
    {"mmap-munmap", 1000, 20, .step = step_map, .setup = set_size, .argument = 64 * KIB},
    {"mmap-touch-4k", 500, 20, .step = step_map_touch, .setup = set_size, .argument = 4 * KIB},
    {"mmap-touch-4m", 6, 10, .step = step_map_touch, .setup = set_size, .argument = 4 * MIB},
    {"page-fault", 256, .step = step_fault, .setup = fault_setup, .ready = fault_ready, .teardown = fault_teardown},
    {0},
};
