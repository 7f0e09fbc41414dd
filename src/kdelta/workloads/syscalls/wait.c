/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Asking about many descriptors at once. All of them are ready to be written to, and nothing waits. */
#include "bench.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <time.h>

#define MOST 1000
#define SPARE 20 /* descriptors that are open anyway */

static int fds[MOST], n_fds, epoll_fd, highest;
static fd_set ready_set, asked_set;
static struct pollfd polled[MOST];
static struct epoll_event events[MOST];

static bool open_fds(long n)
{
    struct rlimit limit;

    must(getrlimit(RLIMIT_NOFILE, &limit));
    if (limit.rlim_cur < MOST + SPARE) {
        limit.rlim_cur = MOST + SPARE;
        if (limit.rlim_max < limit.rlim_cur)
            limit.rlim_max = limit.rlim_cur;
        must(setrlimit(RLIMIT_NOFILE, &limit));
    }
    epoll_fd = (int)must(epoll_create1(EPOLL_CLOEXEC));
    FD_ZERO(&ready_set);
    for (n_fds = 0; n_fds < n; n_fds++) {
        int fd = fds[n_fds] = highest = (int)must(eventfd(0, EFD_CLOEXEC));

        if (fd >= FD_SETSIZE)
            fail("more descriptors than select takes");
        FD_SET(fd, &ready_set);
        polled[n_fds] = (struct pollfd){.fd = fd, .events = POLLOUT};
        events[n_fds] = (struct epoll_event){.events = EPOLLOUT, .data.fd = fd};
        must(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &events[n_fds]));
    }
    return true;
}

static void close_fds(void)
{
    must(close(epoll_fd));
    while (n_fds)
        must(close(fds[--n_fds]));
}

static void expect_all(long n)
{
    if (n != n_fds)
        fail("not all descriptors are ready");
}

static void step_select(void)
{
    struct timeval at_once = {0};

    asked_set = ready_set;
    expect_all(select(highest + 1, NULL, &asked_set, NULL, &at_once));
}

static void step_poll(void)
{
    expect_all(poll(polled, (nfds_t)n_fds, 0));
}

static void step_epoll(void)
{
    expect_all(epoll_wait(epoll_fd, events, n_fds, 0));
}

#define BY_NUMBER(name, ...) \
    {name "-10", 1000, __VA_ARGS__, .setup = open_fds, .teardown = close_fds, .argument = 10}, \
    {name "-1000", 50, __VA_ARGS__, .setup = open_fds, .teardown = close_fds, .argument = 1000}

const struct operation wait_operations[] = {
    BY_NUMBER("select", .step = step_select),
    BY_NUMBER("poll", .step = step_poll),
    BY_NUMBER("epoll-wait", .step = step_epoll),
    {0},
};
