/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sockets in one place or another; a socket stays where it was made. */
#include "nat.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define PATIENCE_MS 3000 /* of the guest's time, in which a packet that is under way arrives a thousand times */

struct sockaddr_in address_of(const char *address, uint16_t port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

    inet_pton(AF_INET, address, &in.sin_addr);
    return in;
}

int socket_in(enum place place, int type)
{
    int fd;

    enter(place);
    fd = (int)must(socket(AF_INET, type | SOCK_CLOEXEC, 0), "a socket");
    enter(ROUTER);
    return fd;
}

void wait_readable(int fd, const char *what)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    int ready = poll(&poll_fd, 1, PATIENCE_MS);

    if (ready < 0)
        fail("waiting for %s: %s", what, strerror(errno));
    if (!ready)
        fail("%s was lost: it did not arrive within %d ms", what, PATIENCE_MS);
}

static in_addr_t expected_sender;

void expect_sender(const char *address)
{
    expected_sender = address_of(address, 0).sin_addr.s_addr;
}

void check_sender(const struct sockaddr_in *from)
{
    char told[INET_ADDRSTRLEN], wanted[INET_ADDRSTRLEN];

    if (__builtin_expect(from->sin_addr.s_addr == expected_sender, 1))
        return;
    inet_ntop(AF_INET, &from->sin_addr, told, sizeof told);
    inet_ntop(AF_INET, &(struct in_addr){expected_sender}, wanted, sizeof wanted);
    fail("a packet came from %s and not from %s: the router's rules do not do what they are for", told, wanted);
}
