/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An init that counts the kernel's instructions of system calls by the time-stamp counter, for a guest without kdelta's plugin and agent.
 *
 * It shares no code with kdelta. On a machine whose counter goes on by one with each instruction it prints
 *
 *     call NAME MODE TIMES LEAST
 *
 * on the console, eight times a call at other moments of a second: the commonest figure of 1,000 calls, how many had it, and the least.
 * What it takes without the call is subtracted. A tick is an instruction or an element of a string operation. The last line is "calls done".
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define WARM 20000
#define CALLS 1000
#define ROUNDS 8
#define APART_US 137000

static char buffer[65536];
static struct timeval day_time;
static struct timespec clock_time;
static struct utsname names;

struct call {
    const char *name;
    long number;
    const char *path; /* of the file whose descriptor is the first argument */
    long first, second, third;
};

/* One pass with that instruction in the middle, between two readings of the counter. */
#define PASS(INSN)                                                                                                                           \
    __asm__ volatile("rdtsc\n\tshl $32, %%rdx\n\tlea (%%rax,%%rdx), %%r8\n\tmov %[number], %%rax\n\tmov %[third], %%rdx\n\t" INSN         \
                     "\n\tmov %%rax, %[result]\n\trdtsc\n\tshl $32, %%rdx\n\tlea (%%rax,%%rdx), %[end]\n\tmov %%r8, %[begin]"               \
                     : [begin] "=&r"(begin), [end] "=&r"(end), [result] "=&m"(result)                                                        \
                     : [number] "r"(call->number), "D"(call->first), "S"(call->second), [third] "r"(call->third)                             \
                     : "rax", "rdx", "rcx", "r8", "r11", "memory")

/* The ticks of one pass: with the call, or with an instruction in its place that does nothing. */
static uint64_t pass(const struct call *call, int is_call)
{
    uint64_t begin, end;
    long result = call->number;

    if (is_call)
        PASS("syscall");
    else
        PASS("nop");
    if (result < 0)
        end += 1000000; /* a call that fails is no call: seen in the figure */
    return end - begin;
}

static int by_size(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

    return (a > b) - (a < b);
}

/* The commonest of that many sorted figures, and how often it is there. */
static uint64_t mode_of(const uint64_t *found, int *times)
{
    uint64_t mode = 0;

    *times = 0;
    for (int at = 0, run = 1; at < CALLS; at++) {
        run = at && found[at] == found[at - 1] ? run + 1 : 1;
        if (run > *times) {
            *times = run;
            mode = found[at];
        }
    }
    return mode;
}

static void count(struct call *call)
{
    static uint64_t found[CALLS];
    uint64_t empty, mode;
    int times;

    if (call->path)
        call->first = open(call->path, O_RDWR);
    for (int at = 0; at < CALLS; at++)
        found[at] = pass(call, 0);
    qsort(found, CALLS, sizeof(*found), by_size);
    empty = mode_of(found, &times);
    for (int at = 0; at < WARM; at++)
        pass(call, 1);
    for (int at = 0; at < CALLS; at++)
        found[at] = pass(call, 1);
    qsort(found, CALLS, sizeof(*found), by_size);
    mode = mode_of(found, &times);
    printf("call %s %ld %d %ld\n", call->name, (long)(mode - empty), times, (long)(found[0] - empty));
    if (call->path)
        close((int)call->first);
}

int main(void)
{
    struct call calls[] = {
        {"getppid", SYS_getppid, 0, 0, 0, 0},
        {"gettimeofday-syscall", SYS_gettimeofday, 0, (long)&day_time, 0, 0},
        {"clock_gettime-syscall", SYS_clock_gettime, 0, CLOCK_MONOTONIC, (long)&clock_time, 0},
        {"uname", SYS_uname, 0, (long)&names, 0, 0},
        {"read-zero-1b", SYS_read, "/dev/zero", 0, (long)buffer, 1},
        {"write-null-1b", SYS_write, "/dev/null", 0, (long)buffer, 1},
        {"write-null-4k", SYS_write, "/dev/null", 0, (long)buffer, 4096},
        {"write-null-64k", SYS_write, "/dev/null", 0, (long)buffer, 65536},
    };
    int console;

    if (getpid() != 1) {
        fputs("own_calls_init: this is the init of a guest\n", stderr);
        return 1;
    }
    mount("devtmpfs", "/dev", "devtmpfs", 0, "");
    console = open("/dev/console", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        dup2(console, fd);
    if (console > 2)
        close(console);
    sleep(20); /* until what the boot left to do is done */
    for (int round = 0; round < ROUNDS; round++)
        for (unsigned at = 0; at < sizeof(calls) / sizeof(*calls); at++) {
            usleep(APART_US);
            count(&calls[at]);
        }
    puts("calls done");
    fflush(stdout);
    tcdrain(1);
    reboot(RB_AUTOBOOT); /* QEMU ends with it */
    return 1;
}
