/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packets that cost little to make and less to receive, so that forwarding dominates: the WAN's host drops them at
 * once. They are made from a frame by a packet socket, or by the kernel's own pktgen, whose thread belongs to no measured task:
 * its region is one iteration.
 */
#include "nat.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEADER_BYTES (sizeof(struct ether_header) + sizeof(struct iphdr) + sizeof(struct udphdr))
#define PAYLOAD_BYTES 64
#define SOURCE_PORT 4009
#define PKTGEN_PACKETS 400
#define PKTGEN_THREAD "/proc/net/pktgen/kpktgend_0"
#define PKTGEN_DEVICE "/proc/net/pktgen/" HOST_DEVICE

static struct {
    struct ether_header ethernet;
    struct iphdr ip;
    struct udphdr udp;
    char payload[PAYLOAD_BYTES];
} __attribute__((packed)) frame;

static int sender;
static const char *source;
static uint64_t to_drop;

/* RFC 1071. */
static uint16_t checksum(const uint16_t *words, size_t n)
{
    uint32_t sum = 0;

    while (n--)
        sum += *words++;
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

static void frame_make(void)
{
    uint16_t header[sizeof frame.ip / 2];

    memset(&frame, 0, sizeof frame);
    memcpy(frame.ethernet.ether_dhost, router_lan_mac, 6);
    memcpy(frame.ethernet.ether_shost, lan_mac, 6);
    frame.ethernet.ether_type = htons(ETHERTYPE_IP);
    frame.ip = (struct iphdr){.version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP};
    frame.ip.tot_len = htons(sizeof frame - sizeof frame.ethernet);
    frame.ip.saddr = address_of(LAN_HOST, 0).sin_addr.s_addr;
    frame.ip.daddr = address_of(WAN_HOST, 0).sin_addr.s_addr;
    memcpy(header, &frame.ip, sizeof header);
    frame.ip.check = checksum(header, sizeof header / 2);
    /* No checksum, which UDP over IPv4 allows: it need not be made, looked at or changed. */
    frame.udp = (struct udphdr){.source = htons((uint16_t)(SOURCE_PORT + flow)), .dest = htons(DROP_PORT)};
    frame.udp.len = htons(sizeof frame.udp + PAYLOAD_BYTES);
}

/* Only what comes from where it should is counted, and dropped. */
static void drop_in_wan(const struct operation *op)
{
    source = op->rules == FORWARD ? LAN_HOST : WAN_ROUTER;
    early_drop(source);
}

static void frames_setup(const struct operation *op)
{
    struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_protocol = 0};
    int one = 1;

    if (!flow)
        drop_in_wan(op);
    frame_make();
    enter(LAN);
    sender = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    to.sll_ifindex = (int)if_nametoindex(HOST_DEVICE);
    enter(ROUTER);
    if (sender < 0)
        lacks("CONFIG_PACKET (packet sockets)");
    must(bind(sender, (struct sockaddr *)&to, sizeof to), "binding a packet socket");
    must(setsockopt(sender, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one), "PACKET_QDISC_BYPASS");
}

static void step_frame(void)
{
    must(send(sender, &frame, sizeof frame, 0), "sending a frame");
    to_drop++;
}

static void all_were_dropped(void)
{
    uint64_t dropped = early_dropped();

    to_drop *= n_flows; /* the second flow's frames were as many */
    if (dropped != to_drop)
        fail("%llu of %llu packets were lost: the WAN's host saw %llu from %s", (unsigned long long)(to_drop - dropped),
             (unsigned long long)to_drop, (unsigned long long)dropped, source);
}

/* Writes a command of pktgen; false when pktgen is not there. */
static bool command(const char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool command(const char *path, const char *format, ...)
{
    char text[128];
    va_list arguments;
    int fd = open(path, O_WRONLY | O_CLOEXEC), size;

    if (fd < 0)
        return false;
    va_start(arguments, format);
    size = vsnprintf(text, sizeof text - 1, format, arguments);
    va_end(arguments);
    text[size++] = '\n'; /* pgctrl cuts off the last byte, whatever it is */
    if (write(fd, text, (size_t)size) != size)
        fail("pktgen refuses %.*s: %s", size - 1, text, strerror(errno));
    close(fd);
    return true;
}

static void pktgen_send(unsigned packets)
{
    command(PKTGEN_DEVICE, "count %u", packets);
    command("/proc/net/pktgen/pgctrl", "start");
    to_drop += packets;
}

static void pktgen_setup(const struct operation *op)
{
    const uint8_t *mac = router_lan_mac;

    drop_in_wan(op);
    enter(LAN);
    if (!command(PKTGEN_THREAD, "rem_device_all"))
        lacks("CONFIG_NET_PKTGEN (the kernel's packet generator)");
    command(PKTGEN_THREAD, "add_device " HOST_DEVICE);
    command(PKTGEN_DEVICE, "pkt_size %zu", HEADER_BYTES + PAYLOAD_BYTES);
    command(PKTGEN_DEVICE, "src_min " LAN_HOST);
    command(PKTGEN_DEVICE, "src_max " LAN_HOST);
    command(PKTGEN_DEVICE, "dst " WAN_HOST);
    command(PKTGEN_DEVICE, "dst_mac %02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
    command(PKTGEN_DEVICE, "udp_src_min %d", SOURCE_PORT);
    command(PKTGEN_DEVICE, "udp_src_max %d", SOURCE_PORT);
    command(PKTGEN_DEVICE, "udp_dst_min %d", DROP_PORT);
    command(PKTGEN_DEVICE, "udp_dst_max %d", DROP_PORT);
    command(PKTGEN_DEVICE, "delay 0");
    pktgen_send(PKTGEN_PACKETS / 4); /* warms up */
}

static void step_pktgen(void)
{
    pktgen_send(PKTGEN_PACKETS);
}

#define FRAMES .step = step_frame, .setup = frames_setup, .finish = all_were_dropped
#define PKTGEN .step = step_pktgen, .everyone = true, .alone = true, .setup = pktgen_setup, .finish = all_were_dropped

const struct operation generator_operations[] = {
    {"frames-64b", MASQUERADE, 400, FRAMES},
    {"frames-64b-forward", FORWARD, 400, FRAMES},
    {"frames-64b-flowtable", FLOWTABLE, 400, FRAMES, .optional = true},
    {"frames-64b-iptables", IPTABLES, 400, FRAMES, .optional = true},
    {"pktgen-64b", MASQUERADE, 1, PKTGEN, .optional = true},
    {"pktgen-64b-forward", FORWARD, 1, PKTGEN, .optional = true},
    {0},
};
