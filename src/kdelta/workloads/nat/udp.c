/* SPDX-License-Identifier: GPL-2.0-or-later */
/* UDP from the LAN's host to the WAN's, one way and there and back. Sizes are those of the payload. */
#include "nat.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define CLIENT_PORT 4001
#define SERVER_PORT 5001
#define SIZE_MAX_BYTES 1400

struct packet {
    uint64_t number;
    char rest[SIZE_MAX_BYTES - sizeof(uint64_t)];
};

static struct packet sent, received;
static size_t size;
static int client = -1, server = -1;

static void udp_setup(const struct operation *op)
{
    struct sockaddr_in from = address_of(LAN_HOST, (uint16_t)(CLIENT_PORT + flow));
    struct sockaddr_in to = address_of(WAN_HOST, (uint16_t)(SERVER_PORT + flow));

    size = op->bytes;
    memset(&sent, 0x5a, sizeof sent);
    client = socket_in(LAN, SOCK_DGRAM);
    server = socket_in(WAN, SOCK_DGRAM);
    must(bind(client, (struct sockaddr *)&from, sizeof from), "binding the LAN's socket");
    must(bind(server, (struct sockaddr *)&to, sizeof to), "binding the WAN's socket");
    must(connect(client, (struct sockaddr *)&to, sizeof to), "connecting the LAN's socket");
}

/* What was sent is there when the call that sent it returns, or nearly so. */
static void take(int fd, struct sockaddr_in *from, const char *what)
{
    socklen_t from_size = sizeof *from;
    ssize_t got = recvfrom(fd, &received, sizeof received, MSG_DONTWAIT, (struct sockaddr *)from, &from_size);

    if (__builtin_expect(got < 0 && errno == EAGAIN, 0)) {
        wait_readable(fd, what);
        got = recvfrom(fd, &received, sizeof received, MSG_DONTWAIT, (struct sockaddr *)from, &from_size);
    }
    must(got, "receiving");
    if (__builtin_expect((size_t)got != size || received.number != sent.number, 0))
        fail("packet %llu of %zu bytes was lost: %llu of %zd bytes arrived in its place",
             (unsigned long long)sent.number, size, (unsigned long long)received.number, got);
}

static struct sockaddr_in one_way(void)
{
    struct sockaddr_in from;

    sent.number++;
    must(send(client, &sent, size, 0), "sending");
    take(server, &from, "a packet to the WAN's host");
    check_sender(&from);
    return from;
}

static void step_one_way(void)
{
    one_way();
}

static void step_echo(void)
{
    struct sockaddr_in from = one_way();

    must(sendto(server, &received, size, 0, (struct sockaddr *)&from, sizeof from), "sending back");
    take(client, &from, "a packet back to the LAN's host");
}

#define UDP .setup = udp_setup
#define ONE_WAY .step = step_one_way, UDP
#define ECHO .step = step_echo, UDP

const struct operation udp_operations[] = {
    {"udp-64b", MASQUERADE, 400, ONE_WAY, .bytes = 64},
    {"udp-1400b", MASQUERADE, 400, ONE_WAY, .bytes = 1400},
    {"udp-echo-64b", MASQUERADE, 200, ECHO, .bytes = 64},
    {"udp-echo-1400b", MASQUERADE, 200, ECHO, .bytes = 1400},
    {"udp-64b-forward", FORWARD, 400, ONE_WAY, .bytes = 64},
    {"udp-1400b-forward", FORWARD, 400, ONE_WAY, .bytes = 1400},
    {"udp-64b-flowtable", FLOWTABLE, 400, ONE_WAY, .bytes = 64, .optional = true},
    {"udp-1400b-flowtable", FLOWTABLE, 400, ONE_WAY, .bytes = 1400, .optional = true},
    {"udp-64b-iptables", IPTABLES, 400, ONE_WAY, .bytes = 64, .optional = true},
    {"udp-1400b-iptables", IPTABLES, 400, ONE_WAY, .bytes = 1400, .optional = true},
    {0},
};

/* By which kdelta checks that it notices what goes wrong. */
const struct operation check_operations[] = {
    {"refused-rule", REFUSED, 10, ONE_WAY, .bytes = 64, .hidden = true},
    {"lost-packets", LOSING, 10, ONE_WAY, .bytes = 64, .hidden = true},
    {"unmasqueraded", UNMASQUERADED, 10, ONE_WAY, .bytes = 64, .hidden = true},
    {0},
};
