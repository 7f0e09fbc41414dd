/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Traffic from a LAN's host through a router to a WAN's, in one guest: what the parts offer each other. */
#ifndef NAT_H
#define NAT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* The two hosts and the router between them: a network namespace each. */
enum place { LAN, ROUTER, WAN, PLACES };
extern const char *const place_names[PLACES];

/* Addresses of private use and of documentation (RFC 1918, RFC 5737). */
#define LAN_NET "192.168.1.0"
#define LAN_HOST "192.168.1.2"
#define LAN_ROUTER "192.168.1.1"
#define WAN_HOST "198.51.100.2"
#define WAN_ROUTER "198.51.100.1"
#define PREFIX 24

#define HOST_DEVICE "eth0"   /* of either host */
#define LAN_DEVICE "lan0"    /* of the router */
#define WAN_DEVICE "wan0"
#define MTU 1500

extern const uint8_t lan_mac[6], router_lan_mac[6], router_wan_mac[6], wan_mac[6];

/* What the router does with what it forwards. */
enum rules { FORWARD, MASQUERADE, FLOWTABLE, IPTABLES, REFUSED, LOSING, UNMASQUERADED };

struct operation {
    const char *name;
    enum rules rules;
    unsigned iterations;
    void (*step)(void);             /* one iteration; fails if a packet is lost or comes from elsewhere */
    void (*setup)(const struct operation *op); /* in the world with its rules; what is left goes with the process */
    void (*finish)(void);           /* after the region: what can only be checked of all of it */
    size_t bytes;                   /* of the payload */
    unsigned warm_up;               /* iterations before the region; else a part of those in it */
    bool optional;                  /* left out where the kernel cannot do it, unless it is named */
    bool alone;                     /* it has one flow */
    bool everyone;                  /* much of it is done by the kernel's threads: their work is the region's own */
    bool hidden;                    /* runs only when it is named */
};

extern const struct operation udp_operations[], tcp_operations[], generator_operations[], check_operations[];

/* telling.c: what the host is told when all operations have ended */
enum told { TOLD_PACKETS, TOLD_CLOCK, TOLD_LEFT_OUT, TOLD_KINDS };
void tell_start(bool by_name); /* operations were named: none of them may be left out */
void tell_operation(const struct operation *op);
void tell(enum told kind, const char *format, ...) __attribute__((format(printf, 2, 3)));
void tell_all(void);
/* Each of these ends the process: with a message, or, for what is optional, without its operation. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void lacks(const char *needed);
long must(long result, const char *what);
#define LEFT_OUT 3 /* exit status of an operation's process */

/* netlink.c: of the namespace that the program is in; 0 or a negative errno */
int link_pair(const char *name, const uint8_t mac[6], const char *peer, const uint8_t peer_mac[6], int peer_namespace);
int link_up(const char *name);
int address_add(const char *name, const char *address, int prefix);
int route_add(const char *net, int prefix, const char *gateway);
int neighbour_add(const char *name, const char *address, const uint8_t mac[6]);
int neighbour_remove(const char *name, const char *address);
int tables_probe(void); /* whether the kernel has nf_tables */

/* world.c */
struct traffic {
    uint64_t packets, bytes; /* that the router received; bytes of Ethernet frames without their checksum */
    uint64_t lost;           /* that some device dropped */
};
void world_make(bool route_back);
void enter(enum place place);
struct traffic world_traffic(void);

/* rules.c */
#define OUTPUT_BYTES 8192
struct program {
    pid_t pid;
    int output;
};
struct program program_start(enum place place, const char *const *argv, const char *input, bool join);
int program_end(struct program *program, char output[OUTPUT_BYTES]);
void rules_load(enum rules rules);
void early_drop(const char *from); /* the WAN's host drops packets for DROP_PORT before it looks for a socket */
uint64_t early_dropped(void);
#define DROP_PORT 9

/* flows.c: what follows is done by a second process, too, on a CPU of its own, where two flows are wanted */
#define MOST_FLOWS 2
extern unsigned flow, n_flows; /* that this process has; how many there are */
void flows_start(const struct operation *op, const struct timespec *settle, uint64_t start_ticks);
void flows_step(void);
void flows_rest(void); /* the first flow's process is about to sleep */
void flows_end(void);

/* sockets.c */
struct sockaddr_in address_of(const char *address, uint16_t port);
int socket_in(enum place place, int type);
void wait_readable(int fd, const char *what);
void expect_sender(const char *address);
void check_sender(const struct sockaddr_in *from); /* that packets come from the address that the rules make of it */

#endif
