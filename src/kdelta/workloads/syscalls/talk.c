/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two processes that talk: pipes, sockets, a futex. The partner's work belongs to the region. */
#include "bench.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "kdelta_clock.h"

enum turn { OURS, THEIRS };

static pid_t partner;
static int near_in, near_out, far_in, far_out; /* descriptors of this process, and of the partner */
static unsigned char ball;
static unsigned idle_word;
static volatile unsigned *turn; /* shared */

pid_t stranger_start(void (*work)(void))
{
    partner = (pid_t)must(fork());
    if (!partner) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        work();
        _exit(0);
    }
    return partner;
}

static void (*serve_joined)(void);

static void join_and_serve(void)
{
    kdelta_join();
    serve_joined();
}

pid_t partner_start(void (*serve)(void))
{
    serve_joined = serve;
    return stranger_start(join_and_serve);
}

void partner_stop(void)
{
    must(kill(partner, SIGKILL));
    must(waitpid(partner, NULL, 0));
}

static void pass(int out)
{
    if (syscall(SYS_write, out, &ball, sizeof ball) != sizeof ball)
        fail("the partner does not take a byte");
}

static void receive(int in)
{
    if (syscall(SYS_read, in, &ball, sizeof ball) != sizeof ball)
        fail("no byte from the partner");
}

static void echo(void)
{
    for (;;) {
        receive(far_in);
        pass(far_out);
    }
}

static void step_round_trip(void)
{
    pass(near_out);
    receive(near_in);
}

static void stop_echo(void)
{
    partner_stop();
    must(close(near_in));
    must(close(far_in));
    if (near_out != near_in) {
        must(close(near_out));
        must(close(far_out));
    }
}

static bool pipe_setup(long unused)
{
    int there[2], back[2];

    (void)unused;
    must(pipe2(there, O_CLOEXEC));
    must(pipe2(back, O_CLOEXEC));
    far_in = there[0], near_out = there[1];
    near_in = back[0], far_out = back[1];
    partner_start(echo);
    return true;
}

static void use_sockets(int near, int far)
{
    near_in = near_out = near;
    far_in = far_out = far;
    partner_start(echo);
}

/* What a message takes is charged to a control group from the rest of a page that was charged before. Where it does not fit into
 * that, each message charges a page and gives it back, 5 % of a round trip, and what the rest is depends on all that went before. A
 * file takes some 200 bytes of it: that many are opened until messages fit. */
#define SHIFTS 16 /* go round a page */
#define TRIES 4

static int shifts[2 * SHIFTS];
static int shifts_made;

static uint64_t round_trip_ticks(void)
{
    uint64_t least = UINT64_MAX;

    for (int n = 0; n < TRIES; n++) {
        uint64_t begin = kdelta_clock_now(), ticks;

        step_round_trip();
        ticks = kdelta_clock_now() - begin;
        least = ticks < least ? ticks : least;
    }
    return least;
}

static void make_messages_fit(void)
{
    uint64_t least = UINT64_MAX;

    if (!kdelta_clock_is_exact())
        return;
    for (shifts_made = 0; shifts_made < 2 * SHIFTS; shifts_made++) {
        uint64_t ticks = round_trip_ticks();

        if (shifts_made >= SHIFTS && ticks <= least + least / 128)
            return;
        least = ticks < least ? ticks : least;
        shifts[shifts_made] = (int)must(open("/dev/null", O_RDONLY | O_CLOEXEC));
    }
}

static bool unix_setup(long unused)
{
    int pair[2];

    (void)unused;
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
    use_sockets(pair[0], pair[1]);
    make_messages_fit();
    return true;
}

static void unix_teardown(void)
{
    stop_echo();
    while (shifts_made)
        must(close(shifts[--shifts_made]));
}

static bool tcp_setup(long unused)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int on = 1, near, far;
    int listener = (int)must(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));

    (void)unused;
    must(bind(listener, (struct sockaddr *)&address, size));
    must(listen(listener, 1));
    must(getsockname(listener, (struct sockaddr *)&address, &size));
    near = (int)must(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    must(connect(near, (struct sockaddr *)&address, size));
    far = (int)must(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
    must(close(listener));
    must(setsockopt(near, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
    must(setsockopt(far, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
    use_sockets(near, far);
    return true;
}

static void step_futex_wake(void)
{
    must(syscall(SYS_futex, &idle_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
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

static void futex_serve(void)
{
    for (;;) {
        await_turn(THEIRS);
        give_turn(OURS);
    }
}

static bool futex_setup(long unused)
{
    (void)unused;
    turn = (unsigned *)must((long)mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    *turn = OURS;
    partner_start(futex_serve);
    return true;
}

static void step_futex_ping_pong(void)
{
    give_turn(THEIRS);
    await_turn(OURS);
}

static void futex_teardown(void)
{
    partner_stop();
    must(munmap((void *)turn, PAGE_BYTES));
}

/* 6.1's scheduler changes state some 15 ms after two tasks begin to take turns: a task that is woken then runs at once. */
#define TURNS 20

const struct operation talk_operations[] = {
    {"pipe-round-trip", 500, TURNS, .step = step_round_trip, .setup = pipe_setup, .teardown = stop_echo},
    {"unix-round-trip", 4000, TURNS, .step = step_round_trip, .setup = unix_setup, .teardown = unix_teardown},
    {"tcp-round-trip", 400, TURNS, .step = step_round_trip, .setup = tcp_setup, .teardown = stop_echo},
    {"futex-wake", 4000, .step = step_futex_wake},
    {"futex-ping-pong", 1000, TURNS, .step = step_futex_ping_pong, .setup = futex_setup, .teardown = futex_teardown},
    {0},
};
