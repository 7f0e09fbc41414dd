/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The LAN's host, the router and the WAN's host: namespaces, veth pairs, and nothing that would move on its own.
 *
 * Each operation has a world of its own, so that what it finds does not depend on what ran before it. No IPv6, and
 * neighbours that are told once: no router solicitation, duplicate address detection or ARP falls into a region.
 * Segments are as large as the wire's, as they come to a router: veth would pass the large ones of segmentation
 * offload. Checksums are left to the devices.
 */
#include "nat.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

const char *const place_names[PLACES] = {"lan", "router", "wan"};

/* Locally administered. */
const uint8_t lan_mac[6] = {2, 0, 0, 0, 1, 2}, router_lan_mac[6] = {2, 0, 0, 0, 1, 1};
const uint8_t router_wan_mac[6] = {2, 0, 0, 0, 2, 1}, wan_mac[6] = {2, 0, 0, 0, 2, 2};

/* More neighbours than any kernel's table begins with has places. */
#define CROWD 120
#define LAN_CROWD "192.168.1.%d"

static int namespaces[PLACES] = {-1, -1, -1};
static int traffic_fd = -1;

void enter(enum place place)
{
    must(setns(namespaces[place], CLONE_NEWNET), "entering a network namespace");
}

static bool set(const char *path, const char *value)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && write(fd, value, strlen(value)) >= 0;

    if (fd >= 0)
        close(fd);
    return good;
}

static void namespace_make(enum place place)
{
    if (unshare(CLONE_NEWNET)) {
        if (errno == EINVAL)
            lacks("CONFIG_NET_NS (network namespaces)");
        fail("making a network namespace: %s", strerror(errno));
    }
    namespaces[place] = (int)must(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), "/proc/self/ns/net");
    set("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
    set("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
}

static void netlink_must(int result, const char *what)
{
    if (result)
        fail("%s: %s", what, strerror(-result));
}

static void pair(const char *name, const uint8_t mac[6], const uint8_t peer_mac[6], enum place peer)
{
    int result = link_pair(name, mac, HOST_DEVICE, peer_mac, namespaces[peer]);

    if (result == -EOPNOTSUPP)
        lacks("CONFIG_VETH (pairs of virtual Ethernet devices)");
    netlink_must(result, "making a pair of devices");
}

static void segments_as_on_the_wire(const char *name)
{
    static const uint32_t offloads[] = {ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO};
    int fd = (int)must(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "a socket");

    for (size_t i = 0; i < sizeof offloads / sizeof *offloads; i++) {
        struct ethtool_value off = {.cmd = offloads[i]};
        struct ifreq request = {.ifr_data = (char *)&off};

        strcpy(request.ifr_name, name);
        ioctl(fd, SIOCETHTOOL, &request); /* what a device does not have need not be turned off */
    }
    close(fd);
}

static void device(const char *name, const char *address, const char *other, const uint8_t mac[6])
{
    segments_as_on_the_wire(name);
    netlink_must(link_up("lo"), "bringing up lo");
    netlink_must(link_up(name), "bringing up a device");
    netlink_must(address_add(name, address, PREFIX), "adding an address");
    netlink_must(neighbour_add(name, other, mac), "adding a neighbour");
}

/* The kernel draws a new secret for its table of neighbours whenever that grows, and how many of them share a place depends on it. The
 * first one is from before the snapshot, and would be the same in all runs of a kernel; so the table grows here, where runs differ
 * by their seeds. Then most places have one neighbour at most.
 */
static void crowd(void)
{
    char address[sizeof "255.255.255.255"];

    for (int i = 0; i < 2 * CROWD; i++) {
        snprintf(address, sizeof address, LAN_CROWD, 100 + i % CROWD);
        netlink_must(i < CROWD ? neighbour_add(HOST_DEVICE, address, router_lan_mac) : neighbour_remove(HOST_DEVICE, address),
                     "a neighbour that comes and goes");
    }
}

void world_make(bool route_back)
{
    for (enum place place = 0; place < PLACES; place++)
        namespace_make(place);
    enter(ROUTER);
    if (tables_probe())
        lacks("CONFIG_NF_TABLES (nftables)");
    pair(LAN_DEVICE, router_lan_mac, lan_mac, LAN);
    pair(WAN_DEVICE, router_wan_mac, wan_mac, WAN);
    if (!set("/proc/sys/net/ipv4/ip_forward", "1"))
        fail("the router cannot forward: /proc/sys/net/ipv4/ip_forward: %s", strerror(errno));
    device(LAN_DEVICE, LAN_ROUTER, LAN_HOST, lan_mac);
    device(WAN_DEVICE, WAN_ROUTER, WAN_HOST, wan_mac);
    traffic_fd = (int)must(open("/proc/self/net/dev", O_RDONLY | O_CLOEXEC), "/proc/self/net/dev");
    enter(WAN);
    device(HOST_DEVICE, WAN_HOST, WAN_ROUTER, router_wan_mac);
    /* Without this, answers reach the LAN only by the address that the router puts in. */
    if (route_back)
        netlink_must(route_add(LAN_NET, PREFIX, WAN_ROUTER), "adding a route");
    enter(LAN);
    device(HOST_DEVICE, LAN_HOST, LAN_ROUTER, router_lan_mac);
    crowd();
    netlink_must(route_add("0.0.0.0", 0, LAN_ROUTER), "adding a route");
    enter(ROUTER);
}

/* Adds up the router's devices as /proc/net/dev has them. */
struct traffic world_traffic(void)
{
    static const char *const devices[] = {LAN_DEVICE ":", WAN_DEVICE ":"};
    struct traffic sum = {0};
    char text[4096];
    ssize_t size = pread(traffic_fd, text, sizeof text - 1, 0);

    text[size > 0 ? size : 0] = '\0';
    for (size_t i = 0; i < 2; i++) {
        const char *line = strstr(text, devices[i]);
        unsigned long long bytes, packets, dropped[2];

        if (!line || sscanf(line + strlen(devices[i]), "%llu %llu %*u %llu %*u %*u %*u %*u %*u %*u %*u %llu", &bytes,
                            &packets, &dropped[0], &dropped[1]) != 4)
            fail("no counters of %s in /proc/net/dev", devices[i]);
        sum.bytes += bytes;
        sum.packets += packets;
        sum.lost += dropped[0] + dropped[1];
    }
    return sum;
}
