/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a job wants changed in the kernel before its program runs: modules, and the perturbations of a run. */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_SECOND 1000000000
#define PAGE_BYTES 4096
#define HELD_FOLDER "/run/held"
#define HELD_FILES 16
#define MODE_FILE "/proc/sys/kernel/kernel_mode_directory"

void modules_load(const struct job *job)
{
    for (size_t i = 0; i < job->n_modules; i++) {
        int fd = open(job->modules[i], O_RDONLY | O_CLOEXEC);
        bool loaded = fd >= 0 && (!syscall(SYS_finit_module, fd, "", 0) || errno == EEXIST);

        if (!loaded && !job->optional[i])
            finish("module %s: %s", job->modules[i], strerror(errno));
        if (!loaded)
            message("warning", "the kernel does not take the module %s: %s\n", job->modules[i], strerror(errno));
        close(fd);
    }
    if (job->n_modules)
        facts_send_modules();
}

/* No file of the host is of the future, or `make` would complain. */
void date_set(const struct job *job)
{
    struct timespec date = {.tv_sec = (time_t)job->date_seconds};

    if (job->date_seconds && clock_settime(CLOCK_REALTIME, &date))
        message("note", "the date cannot be set: %s", strerror(errno));
}

/* Makes the wall clock a whole number of seconds ahead of CLOCK_MONOTONIC. The kernel adds an offset to the nanoseconds of one to have
 * the other's, and in the moments where both make a second clock_gettime() executes some instructions more; how much of each second
 * that is depends on how long this kernel took to boot. */
void clocks_join(void)
{
    struct timespec monotonic, wall;
    struct timex ahead = {.modes = ADJ_SETOFFSET | ADJ_NANO};

    clock_gettime(CLOCK_MONOTONIC, &monotonic); /* first: what is left of the offset is then above 0, and makes a second seldom */
    clock_gettime(CLOCK_REALTIME, &wall);
    ahead.time.tv_usec = monotonic.tv_nsec - wall.tv_nsec;
    if (ahead.time.tv_usec < 0)
        ahead.time.tv_usec += NS_PER_SECOND;
    if (adjtimex(&ahead) < 0)
        message("note", "the clocks keep their offset: %s", strerror(errno));
}

/* From now on all that is exec'd runs in the kernel's mode, and the agent itself goes on in its own. */
void mode_set(const struct job *job)
{
    int fd, error;

    if (!job->mode)
        return;
    fd = open(MODE_FILE, O_WRONLY | O_CLOEXEC);
    error = fd < 0 || write(fd, "/", 1) != 1 ? errno : 0;
    close(fd);
    if (error == ENOENT)
        finish("mode %s: this kernel has no kernel mode: +kernel-mode builds one that has it", job->mode);
    if (error == EOPNOTSUPP)
        finish("mode %s: SMEP or SMAP is on: the CPU would not let the kernel's mode execute a program's pages", job->mode);
    if (error)
        finish("mode %s: %s: %s", job->mode, MODE_FILE, strerror(error));
}

static bool seed_pool(const uint8_t *seed, size_t size)
{
    struct {
        struct rand_pool_info info;
        uint8_t bytes[JOB_SEED_MAX_BYTES];
    } pool = {.info = {.entropy_count = (int)size * 8, .buf_size = (int)size}};
    int fd = open("/dev/urandom", O_RDWR | O_CLOEXEC);
    bool good;

    memcpy(pool.info.buf, seed, size);
    good = fd >= 0 && !ioctl(fd, RNDADDENTROPY, &pool) && !ioctl(fd, RNDRESEEDCRNG);
    if (fd >= 0)
        close(fd);
    return good;
}

/* The guest has no source of entropy, and a kernel whose pool is empty takes a long way round for each random number; real
 * machines have left that behind when they run anything that one would measure. */
void random_fill(void)
{
    uint8_t bytes[JOB_SEED_MAX_BYTES];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 167 + 13);
    if (!seed_pool(bytes, sizeof bytes))
        message("note", "the kernel takes no seed: %s", strerror(errno));
}

/* Files with their inodes and names, that are held as long as the guest lives. */
static bool hold_files(const char *prefix, uint64_t n)
{
    mkdir(HELD_FOLDER, 0755);
    for (uint64_t i = 0; i < n; i++) {
        char path[64];
        int fd;

        snprintf(path, sizeof path, HELD_FOLDER "/%s%llu", prefix, (unsigned long long)i);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0)
            return false;
        close(fd);
    }
    return true;
}

/* Pages and files: what is allocated later lies elsewhere. */
static bool hold(uint64_t pages)
{
    size_t size = pages * PAGE_BYTES;
    volatile uint8_t *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return false;
    madvise((void *)memory, size, MADV_NOHUGEPAGE);
    madvise((void *)memory, size, MADV_DONTFORK); /* or each fork would copy their table entries */
    for (size_t i = 0; i < size; i += PAGE_BYTES)
        memory[i] = 1;
    return hold_files("", pages % HELD_FILES + 1);
}

/* In the program's control group: the kernel charges small objects by bytes from a page's worth that each CPU has in stock, and what is
 * left of it when the program begins decides whether its own objects fit in, or each of them takes a page and gives it back. */
void perturb_group(const struct job *job)
{
    if (job->pages)
        hold_files("group-", job->pages / HELD_FILES % HELD_FILES);
}

void perturb(const struct job *job)
{
    if (job->seed_bytes && !seed_pool(job->seed, job->seed_bytes))
        message("note", "the kernel takes no seed: %s", strerror(errno));
    if (job->pages && !hold(job->pages))
        message("note", "%llu pages cannot be held: %s", (unsigned long long)job->pages, strerror(errno));
}
