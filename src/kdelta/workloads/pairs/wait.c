/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Waiting and waking: futexes, sets of descriptors, poll. */
#include "pairs.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

static volatile unsigned *turn; /* whose CPU's it is; shared */
static bool words_differ;

static void choose_words(long object)
{
    words_differ = object == OWN;
}

static unsigned *word_of(unsigned cpu)
{
    return (unsigned *)(void *)sides[words_differ ? cpu : 0].buffer;
}

static void step_wake(unsigned cpu)
{
    must(syscall(SYS_futex, word_of(cpu), FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
}

static void setup_turn(long unused)
{
    void *shared = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    (void)unused;
    if (shared == MAP_FAILED)
        fail("no shared memory");
    sides[0].area_start = shared; /* which is released after the pair */
    sides[0].area_bytes = PAGE_BYTES;
    turn = shared;
}

static void give_turn(unsigned to)
{
    *turn = to;
    must(syscall(SYS_futex, turn, FUTEX_WAKE, 1, NULL, NULL, 0));
}

static void await_turn(unsigned mine)
{
    unsigned other = !mine;

    while (*turn == other)
        syscall(SYS_futex, turn, FUTEX_WAIT, other, NULL, NULL, 0);
}

/* CPU 0 begins, CPU 1 answers. */
static void step_ping_pong(unsigned cpu)
{
    if (!cpu)
        give_turn(1);
    await_turn(cpu);
    if (cpu)
        give_turn(0);
}

/* A set with one counter, which is ready. */
static void own_set(unsigned cpu)
{
    struct epoll_event event = {.events = EPOLLIN};

    sides[cpu].in = opened(eventfd(1, EFD_CLOEXEC));
    sides[cpu].fd = opened(epoll_create1(EPOLL_CLOEXEC));
    must(epoll_ctl(sides[cpu].fd, EPOLL_CTL_ADD, sides[cpu].in, &event));
}

static void setup_one_set(long unused)
{
    (void)unused;
    own_set(0);
    sides[1].fd = sides[0].fd;
}

/* A set that the other CPU asks at this moment has nothing that is ready: the kernel has taken it out to look at it. */
static void step_epoll(unsigned cpu)
{
    long ready = syscall(SYS_epoll_pwait, sides[cpu].fd, sides[cpu].buffer, 1, 0, NULL, 0);

    must(ready);
    if (!ready && sides[0].fd != sides[1].fd)
        fail("a counter is not ready");
}

static void own_pipe(unsigned cpu)
{
    int ends[2];

    must(pipe2(ends, O_CLOEXEC));
    sides[cpu].in = opened(ends[0]);
    sides[cpu].out = opened(ends[1]);
    must(write(sides[cpu].out, "", 1));
}

static void setup_one_pipe(long unused)
{
    (void)unused;
    own_pipe(0);
    sides[1].in = sides[0].in;
}

static void step_poll(unsigned cpu)
{
    struct pollfd polled = {.fd = sides[cpu].in, .events = POLLIN};
    struct timespec at_once = {0};

    if (syscall(SYS_ppoll, &polled, 1, &at_once, NULL, 0) != 1)
        fail("a pipe is not ready");
}

const struct pair wait_pairs[] = {
    {"futex-wake-same-word", .threads = true, .iterations = 2500, .setup = choose_words, .step = step_wake, .argument = SAME},
    {"futex-wake-two-words", .threads = true, .iterations = 2500, .setup = choose_words, .step = step_wake, .argument = OWN},
    {"futex-ping-pong-across", .iterations = 200, .warm_up = 1000, .setup = setup_turn, .step = step_ping_pong},
    {"epoll-wait-same-set", .iterations = 2000, .setup = setup_one_set, .step = step_epoll},
    {"epoll-wait-two-sets", .iterations = 2000, .prepare = own_set, .step = step_epoll},
    {"poll-same-pipe", .threads = true, .iterations = 1500, .setup = setup_one_pipe, .step = step_poll},
    {"poll-two-pipes", .threads = true, .iterations = 1500, .prepare = own_pipe, .step = step_poll},
    {0},
};
