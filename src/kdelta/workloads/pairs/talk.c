/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pipes, sockets and counters: from CPU to CPU and back, or one of each CPU's own. */
#include "pairs.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#define DATAGRAM_BYTES 64

static void send_byte(unsigned cpu)
{
    if (syscall(SYS_write, sides[cpu].out, sides[cpu].buffer, 1) != 1)
        fail("a byte is not taken");
}

static void receive_byte(unsigned cpu)
{
    if (syscall(SYS_read, sides[cpu].in, sides[cpu].buffer, 1) != 1)
        fail("no byte comes");
}

static void step_own_byte(unsigned cpu)
{
    send_byte(cpu);
    receive_byte(cpu);
}

/* CPU 0 begins, CPU 1 answers. */
static void step_across(unsigned cpu)
{
    if (!cpu)
        send_byte(0);
    receive_byte(cpu);
    if (cpu)
        send_byte(1);
}

/* What CPU `from` writes, CPU `to` reads. */
static void join_by_pipe(unsigned from, unsigned to)
{
    int ends[2];

    must(pipe2(ends, O_CLOEXEC));
    sides[to].in = opened(ends[0]);
    sides[from].out = opened(ends[1]);
}

static void setup_pipes_across(long unused)
{
    (void)unused;
    join_by_pipe(0, 1);
    join_by_pipe(1, 0);
}

static void own_pipe(unsigned cpu)
{
    join_by_pipe(cpu, cpu);
}

static void setup_unix_across(long unused)
{
    int ends[CPUS];

    (void)unused;
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
    for (unsigned cpu = 0; cpu < CPUS; cpu++)
        sides[cpu].in = sides[cpu].out = opened(ends[cpu]);
}

static void own_unix(unsigned cpu)
{
    int ends[2];

    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
    sides[cpu].out = opened(ends[0]);
    sides[cpu].in = opened(ends[1]);
}

/* A read takes 1 of it: there is as much as both have added and not yet taken, so the read that follows an addition never waits. */
static void own_counter(unsigned cpu)
{
    sides[cpu].fd = opened(eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC));
}

static void setup_one_counter(long unused)
{
    (void)unused;
    own_counter(0);
    sides[1].fd = sides[0].fd;
}

static void step_counter(unsigned cpu)
{
    uint64_t one = 1;

    must(syscall(SYS_write, sides[cpu].fd, &one, sizeof one));
    must(syscall(SYS_read, sides[cpu].fd, &one, sizeof one));
}

static void own_datagrams(unsigned cpu)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = opened(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));

    must(bind(fd, (struct sockaddr *)&address, size));
    must(getsockname(fd, (struct sockaddr *)&address, &size));
    must(connect(fd, (struct sockaddr *)&address, size));
    sides[cpu].fd = fd;
}

static void step_datagram(unsigned cpu)
{
    struct side *side = &sides[cpu];

    must(syscall(SYS_sendto, side->fd, side->buffer, DATAGRAM_BYTES, 0, NULL, 0));
    must(syscall(SYS_recvfrom, side->fd, side->buffer, DATAGRAM_BYTES, 0, NULL, NULL));
}

static void step_socket_close(unsigned cpu)
{
    long fd = must(syscall(SYS_socket, AF_INET, SOCK_STREAM, 0));

    (void)cpu;
    must(syscall(SYS_close, fd));
}

const struct pair talk_pairs[] = {
    {"pipe-across", .iterations = 200, .warm_up = 1000, .setup = setup_pipes_across, .step = step_across},
    {"pipe-each", .iterations = 700, .prepare = own_pipe, .step = step_own_byte},
    {"unix-across", .iterations = 150, .warm_up = 1000, .setup = setup_unix_across, .step = step_across},
    {"unix-each", .iterations = 300, .prepare = own_unix, .step = step_own_byte},
    {"eventfd-same-counter", .iterations = 1000, .setup = setup_one_counter, .step = step_counter},
    {"eventfd-two-counters", .iterations = 1000, .prepare = own_counter, .step = step_counter},
    {"udp-each", .iterations = 200, .prepare = own_datagrams, .step = step_datagram},
    {"socket-close-processes", .iterations = 150, .warm_up = 600, .step = step_socket_close},
    {"socket-close-threads", .threads = true, .iterations = 150, .warm_up = 600, .step = step_socket_close},
    {0},
};
