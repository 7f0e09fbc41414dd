/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the router does, told to the kernel by the distribution's own nft and iptables. */
#include "nat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kdelta.h"

#define NFT "/usr/sbin/nft"
#define IPTABLES_LEGACY "/usr/sbin/xtables-legacy-multi"

#define POSTROUTING \
    "  chain postrouting {\n" \
    "    type nat hook postrouting priority srcnat; policy accept;\n" \
    "    oifname \"" WAN_DEVICE "\" masquerade\n" \
    "  }\n"

static const char masquerade[] = "table ip kdelta {\n" POSTROUTING "}\n";

static const char flowtable[] =
    "table ip kdelta {\n"
    "  flowtable fast {\n"
    "    hook ingress priority filter; devices = { " LAN_DEVICE ", " WAN_DEVICE " };\n"
    "  }\n"
    "  chain forward {\n"
    "    type filter hook forward priority filter; policy accept;\n"
    "    ip protocol { tcp, udp } flow add @fast\n"
    "  }\n" POSTROUTING "}\n";

static const char refused[] = "table ip kdelta {\n  chain postrouting {\n    jump nowhere\n  }\n}\n";

static const char losing[] =
    "table ip kdelta {\n"
    "  chain forward { type filter hook forward priority filter; policy drop; }\n" POSTROUTING "}\n";

/* Before connections are tracked or routes looked up. */
static const char drop[] =
    "table ip kdelta {\n"
    "  chain prerouting {\n"
    "    type filter hook prerouting priority raw; policy accept;\n"
    "    ip saddr %s udp dport %d counter drop\n"
    "  }\n"
    "}\n";

/* A program in one place, with a text to read; program_end() reads what it says. With `join` it is measured, too. */
struct program program_start(enum place place, const char *const *argv, const char *input, bool join)
{
    struct program program;
    int in[2], out[2];

    must(pipe2(in, O_CLOEXEC), "a pipe");
    must(pipe2(out, O_CLOEXEC), "a pipe");
    program.pid = (pid_t)must(fork(), "a process");
    if (!program.pid) {
        enter(place);
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        dup2(out[1], STDERR_FILENO);
        if (join)
            kdelta_join();
        execv(argv[0], (char *const *)argv);
        dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    if (input && write(in[1], input, strlen(input)) < 0) /* which fits into the pipe */
        fail("writing to %s: %s", argv[0], strerror(errno));
    close(in[1]);
    program.output = out[0];
    return program;
}

/* Its exit status, and what it said, without the line end. */
int program_end(struct program *program, char output[OUTPUT_BYTES])
{
    char spill[512];
    size_t used = 0;
    ssize_t got;
    int status;

    while ((got = read(program->output, used < OUTPUT_BYTES - 1 ? output + used : spill,
                       used < OUTPUT_BYTES - 1 ? OUTPUT_BYTES - 1 - used : sizeof spill)) > 0)
        used += used < OUTPUT_BYTES - 1 ? (size_t)got : 0;
    while (used && output[used - 1] == '\n')
        used--;
    output[used] = '\0';
    close(program->output);
    must(waitpid(program->pid, &status, 0), "waiting for a program");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool nft(enum place place, const char *rules, char output[OUTPUT_BYTES])
{
    static const char *const argv[] = {NFT, "-f", "-", NULL};
    struct program program = program_start(place, argv, rules, false);

    return !program_end(&program, output);
}

/* `needed`: what of the kernel the rules take, which it may not have. */
static void nft_must(enum place place, const char *rules, const char *needed)
{
    static char output[OUTPUT_BYTES];

    if (access(NFT, X_OK))
        fail("%s is missing in the guest: the workload's packages do not have it", NFT);
    if (nft(place, rules, output))
        return;
    /* What the kernel does not have it says like so; whatever else is wrong with a rule, nft says itself. */
    if (needed && (strstr(output, "No such file") || strstr(output, "not supported") ||
                   strstr(output, "Invalid argument")))
        lacks(needed);
    fail("nft refuses the rules of %s: %s", place_names[place], output);
}

static void iptables_must(void)
{
    static const char *const argv[] = {IPTABLES_LEGACY, "iptables", "-t", "nat", "-A", "POSTROUTING",
                                       "-o", WAN_DEVICE, "-j", "MASQUERADE", NULL};
    static char output[OUTPUT_BYTES];
    struct program program = program_start(ROUTER, argv, NULL, false);

    if (!program_end(&program, output))
        return;
    if (strstr(output, "does not exist") || strstr(output, "No chain/target/match") || strstr(output, "initialize"))
        lacks("CONFIG_IP_NF_NAT and CONFIG_IP_NF_TARGET_MASQUERADE (iptables)");
    fail("iptables refuses the rule: %s", output);
}

void rules_load(enum rules rules)
{
    switch (rules) {
    case FORWARD:
    case UNMASQUERADED: break;
    case MASQUERADE:
        nft_must(ROUTER, masquerade, "CONFIG_NF_CONNTRACK, CONFIG_NFT_NAT and CONFIG_NFT_MASQ (masquerading)");
        break;
    case FLOWTABLE:
        nft_must(ROUTER, flowtable, "CONFIG_NF_FLOW_TABLE_INET and CONFIG_NFT_FLOW_OFFLOAD (flow tables)");
        break;
    case IPTABLES: iptables_must(); break;
    case REFUSED: nft_must(ROUTER, refused, NULL); break;
    case LOSING: nft_must(ROUTER, losing, NULL); break;
    }
}

void early_drop(const char *from)
{
    char rules[sizeof drop + 64];

    snprintf(rules, sizeof rules, drop, from, DROP_PORT);
    nft_must(WAN, rules, NULL);
}

uint64_t early_dropped(void)
{
    static const char *const argv[] = {NFT, "list", "table", "ip", "kdelta", NULL};
    static char output[OUTPUT_BYTES];
    struct program program = program_start(WAN, argv, NULL, false);
    const char *found;
    unsigned long long packets;

    if (program_end(&program, output) || !(found = strstr(output, "packets ")) ||
        sscanf(found, "packets %llu", &packets) != 1)
        fail("nft does not tell its counter: %s", output);
    return packets;
}
