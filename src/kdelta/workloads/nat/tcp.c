/* SPDX-License-Identifier: GPL-2.0-or-later */
/* TCP from the LAN's host to the WAN's: in bulk, by one task that holds both ends or by iperf3; and connections that
 * are only made.
 */
#include "nat.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SERVER_PORT 5001
#define BUFFER_BYTES (64 << 10)
#define MARK_BYTES 4096        /* in each of these pieces the buffer's number stands once */
#define FIRST_CLIENT_PORT 20000
#define FLOW_PORTS 10000       /* that a flow may use */
#define IPERF "/usr/bin/iperf3"
#define IPERF_BYTES 2M
#define IPERF_READY_NS 100000000
#define TEXT(number) TEXT_(number)
#define TEXT_(number) #number

static char out[BUFFER_BYTES], in[BUFFER_BYTES];
static uint64_t number;
static int client = -1, server = -1, listener = -1;
static uint16_t client_port = FIRST_CLIENT_PORT, server_port = SERVER_PORT;
static struct program iperf_server;

static void listen_in_wan(void)
{
    struct sockaddr_in at;

    client_port += (uint16_t)(flow * FLOW_PORTS);
    server_port += (uint16_t)flow;
    at = address_of(WAN_HOST, server_port);
    listener = socket_in(WAN, SOCK_STREAM);
    must(bind(listener, (struct sockaddr *)&at, sizeof at), "binding the WAN's socket");
    must(listen(listener, 16), "listening");
}

/* From a port that is told: choosing one takes longer or shorter by chance. */
static int connect_from(int fd, uint16_t port)
{
    struct sockaddr_in from = address_of(LAN_HOST, port), to = address_of(WAN_HOST, server_port);

    must(bind(fd, (struct sockaddr *)&from, sizeof from), "binding the LAN's socket");
    if (connect(fd, (struct sockaddr *)&to, sizeof to))
        fail("connecting through the router: %s", strerror(errno));
    return fd;
}

static int accepted(void)
{
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    int fd = accept4(listener, (struct sockaddr *)&from, &size, SOCK_CLOEXEC);

    must(fd, "accepting a connection");
    check_sender(&from);
    return fd;
}

static void bulk_setup(const struct operation *op)
{
    (void)op;
    memset(out, 0x5a, sizeof out);
    listen_in_wan();
    client = connect_from(socket_in(LAN, SOCK_STREAM), client_port);
    server = accepted();
}

static void wait_for_either(bool sending)
{
    struct pollfd fds[] = {{.fd = server, .events = POLLIN}, {.fd = sending ? client : -1, .events = POLLOUT}};

    if (poll(fds, 2, 3000) <= 0)
        fail("segments were lost: nothing arrived within 3000 ms");
}

static size_t moved(ssize_t bytes, const char *what)
{
    if (bytes < 0 && errno != EAGAIN)
        fail("%s: %s", what, strerror(errno));
    return bytes < 0 ? 0 : (size_t)bytes;
}

static void step_bulk(void)
{
    size_t sent = 0, got = 0;

    number++;
    for (size_t i = 0; i < BUFFER_BYTES; i += MARK_BYTES)
        memcpy(out + i, &number, sizeof number);
    while (got < BUFFER_BYTES) {
        size_t now_sent = 0, now_got;

        if (sent < BUFFER_BYTES)
            now_sent = moved(send(client, out + sent, BUFFER_BYTES - sent, MSG_DONTWAIT | MSG_NOSIGNAL), "sending");
        now_got = moved(recv(server, in + got, BUFFER_BYTES - got, MSG_DONTWAIT), "receiving");
        sent += now_sent;
        got += now_got;
        if (!now_sent && !now_got)
            wait_for_either(sent < BUFFER_BYTES);
    }
    for (size_t i = 0; i < BUFFER_BYTES; i += MARK_BYTES)
        if (memcmp(in + i, &number, sizeof number))
            fail("buffer %llu did not arrive as it was sent", (unsigned long long)number);
}

static void connections_setup(const struct operation *op)
{
    (void)op;
    listen_in_wan();
    enter(LAN); /* where a step makes its socket */
}

static void step_connection(void)
{
    int fd = connect_from((int)must(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "a socket"), client_port++);
    int other = accepted();

    close(fd);
    close(other);
}

static void iperf_serve(void)
{
    static const char *const argv[] = {IPERF, "-s", "-1", "-4", "-p", TEXT(SERVER_PORT), NULL};
    struct timespec ready = {.tv_nsec = IPERF_READY_NS};

    iperf_server = program_start(WAN, argv, NULL, true);
    nanosleep(&ready, NULL);
}

static void step_iperf(void)
{
    static const char *const argv[] = {
        IPERF, "-c", WAN_HOST, "-4", "-p", TEXT(SERVER_PORT), "-n", TEXT(IPERF_BYTES), NULL,
    };
    static char output[OUTPUT_BYTES];
    struct program program = program_start(LAN, argv, NULL, true);

    if (program_end(&program, output))
        fail("iperf3 failed: %s", output);
}

static void iperf_finish(void)
{
    static char output[OUTPUT_BYTES];

    if (program_end(&iperf_server, output))
        fail("iperf3's server failed: %s", output);
    if (!strstr(output, "connection from " WAN_ROUTER ","))
        fail("iperf3's server was not called by %s: the router's rules do not do what they are for", WAN_ROUTER);
}

/* A whole test first, which is what warms up. */
static void iperf_setup(const struct operation *op)
{
    (void)op;
    if (access(IPERF, X_OK))
        lacks("the program " IPERF);
    iperf_serve();
    step_iperf();
    iperf_finish();
    iperf_serve();
}

/* A connection settles after some 25 buffers: until then windows grow, and each segment is acknowledged alone. */
#define BULK .step = step_bulk, .setup = bulk_setup, .warm_up = 48, .everyone = true
#define CONNECTIONS .step = step_connection, .setup = connections_setup

const struct operation tcp_operations[] = {
    {"tcp-bulk", MASQUERADE, 24, BULK},
    {"tcp-bulk-forward", FORWARD, 24, BULK},
    {"tcp-bulk-flowtable", FLOWTABLE, 24, BULK, .optional = true},
    {"tcp-bulk-iptables", IPTABLES, 24, BULK, .optional = true},
    {"tcp-iperf3", MASQUERADE, 1, .step = step_iperf, .setup = iperf_setup, .finish = iperf_finish, .everyone = true,
     .alone = true},
    {"connections", MASQUERADE, 60, CONNECTIONS},
    {"connections-iptables", IPTABLES, 60, CONNECTIONS, .optional = true},
    {0},
};
