/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Links, addresses, routes and neighbours by rtnetlink: no program of the guest is needed for them. */
#include "nat.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct request {
    struct nlmsghdr head;
    char body[1024];
};

static void *put(struct request *request, const void *bytes, size_t size)
{
    void *place = (char *)request + NLMSG_ALIGN(request->head.nlmsg_len);

    if (bytes)
        memcpy(place, bytes, size);
    request->head.nlmsg_len = NLMSG_ALIGN(request->head.nlmsg_len) + (uint32_t)size;
    return place;
}

static void attribute(struct request *request, unsigned short type, const void *bytes, size_t size)
{
    struct rtattr head = {.rta_len = (unsigned short)RTA_LENGTH(size), .rta_type = type};

    put(request, &head, sizeof head);
    put(request, bytes, size);
}

static struct rtattr *nest_begin(struct request *request, unsigned short type)
{
    struct rtattr head = {.rta_type = type};

    return put(request, &head, sizeof head);
}

static void nest_end(struct request *request, struct rtattr *nest)
{
    nest->rta_len = (unsigned short)((char *)request + NLMSG_ALIGN(request->head.nlmsg_len) - (char *)nest);
}

static struct request request_of(unsigned short type, unsigned short flags)
{
    return (struct request){
        .head = {.nlmsg_len = NLMSG_LENGTH(0), .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags}};
}

/* The kernel's answer: 0 or a negative errno. */
static int ask(int protocol, struct request *request)
{
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
        char more[4096];
    } answer;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol), result = -errno;

    if (fd < 0)
        return result;
    if (send(fd, request, request->head.nlmsg_len, 0) < 0 || recv(fd, &answer, sizeof answer, 0) < 0)
        result = -errno;
    else
        result = answer.head.nlmsg_type == NLMSG_ERROR ? answer.error.error : 0;
    close(fd);
    return result;
}

static struct in_addr parsed(const char *address)
{
    struct in_addr in;

    inet_pton(AF_INET, address, &in);
    return in;
}

int link_pair(const char *name, const uint8_t mac[6], const char *peer, const uint8_t peer_mac[6], int peer_namespace)
{
    struct request request = request_of(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
    struct ifinfomsg link = {.ifi_family = AF_UNSPEC};
    struct rtattr *info, *data, *other;

    put(&request, &link, sizeof link);
    attribute(&request, IFLA_IFNAME, name, strlen(name) + 1);
    attribute(&request, IFLA_ADDRESS, mac, 6);
    info = nest_begin(&request, IFLA_LINKINFO);
    attribute(&request, IFLA_INFO_KIND, "veth", 4);
    data = nest_begin(&request, IFLA_INFO_DATA);
    other = nest_begin(&request, VETH_INFO_PEER);
    put(&request, &link, sizeof link);
    attribute(&request, IFLA_IFNAME, peer, strlen(peer) + 1);
    attribute(&request, IFLA_ADDRESS, peer_mac, 6);
    attribute(&request, IFLA_NET_NS_FD, &peer_namespace, sizeof peer_namespace);
    nest_end(&request, other);
    nest_end(&request, data);
    nest_end(&request, info);
    return ask(NETLINK_ROUTE, &request);
}

int link_up(const char *name)
{
    struct request request = request_of(RTM_NEWLINK, 0);
    struct ifinfomsg link = {
        .ifi_family = AF_UNSPEC, .ifi_index = (int)if_nametoindex(name), .ifi_flags = IFF_UP, .ifi_change = IFF_UP};

    put(&request, &link, sizeof link);
    return ask(NETLINK_ROUTE, &request);
}

int address_add(const char *name, const char *address, int prefix)
{
    struct request request = request_of(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL);
    struct ifaddrmsg message = {
        .ifa_family = AF_INET, .ifa_prefixlen = (uint8_t)prefix, .ifa_index = if_nametoindex(name)};
    struct in_addr in = parsed(address);

    put(&request, &message, sizeof message);
    attribute(&request, IFA_LOCAL, &in, sizeof in);
    attribute(&request, IFA_ADDRESS, &in, sizeof in);
    return ask(NETLINK_ROUTE, &request);
}

int route_add(const char *net, int prefix, const char *gateway)
{
    struct request request = request_of(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL);
    struct rtmsg message = {.rtm_family = AF_INET, .rtm_dst_len = (uint8_t)prefix, .rtm_table = RT_TABLE_MAIN,
                            .rtm_protocol = RTPROT_STATIC, .rtm_scope = RT_SCOPE_UNIVERSE, .rtm_type = RTN_UNICAST};
    struct in_addr to = parsed(net), by = parsed(gateway);

    put(&request, &message, sizeof message);
    if (prefix)
        attribute(&request, RTA_DST, &to, sizeof to);
    attribute(&request, RTA_GATEWAY, &by, sizeof by);
    return ask(NETLINK_ROUTE, &request);
}

static struct request neighbour(unsigned short type, unsigned short flags, const char *name, const char *address)
{
    struct request request = request_of(type, flags);
    struct ndmsg message = {
        .ndm_family = AF_INET, .ndm_ifindex = (int)if_nametoindex(name), .ndm_state = NUD_PERMANENT};
    struct in_addr in = parsed(address);

    put(&request, &message, sizeof message);
    attribute(&request, NDA_DST, &in, sizeof in);
    return request;
}

int neighbour_add(const char *name, const char *address, const uint8_t mac[6])
{
    struct request request = neighbour(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, name, address);

    attribute(&request, NDA_LLADDR, mac, 6);
    return ask(NETLINK_ROUTE, &request);
}

int neighbour_remove(const char *name, const char *address)
{
    struct request request = neighbour(RTM_DELNEIGH, 0, name, address);

    return ask(NETLINK_ROUTE, &request);
}

int tables_probe(void)
{
    struct request request = request_of(NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETGEN, 0);
    struct nfgenmsg message = {.nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0};

    put(&request, &message, sizeof message);
    return ask(NETLINK_NETFILTER, &request);
}
