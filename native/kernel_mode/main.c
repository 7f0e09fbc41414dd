/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Before main(): rewrites the system calls of this program and its libraries to call the kernel directly, when the
 * environment's KDELTA_CALL says so and the program runs in kernel mode. docs/kernel-mode-calls.md describes it.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "call.h"

#define PR_KERNEL_MODE 0x4b4d4f44
#define KERNEL_MODE_ENTRIES 3

/* What prctl() fills in. */
struct kernel_mode_entries {
    uint64_t syscall; /* entry_SYSCALL_64 */
    uint64_t call;    /* the entry that leaves out what only a change of privilege needs */
};

struct wish {
    const char *mode, *counts, *cache;
    enum talk talk;
};

static const char *value(const char *variable, const char *name)
{
    size_t length = strlen(name);

    return strncmp(variable, name, length) || variable[length] != '=' ? NULL : variable + length + 1;
}

static struct wish wish_of(char **environment)
{
    struct wish wish = {0};

    for (; environment && *environment; environment++) {
        const char *found;

        if ((found = value(*environment, "KDELTA_CALL")))
            wish.mode = found;
        else if ((found = value(*environment, "KDELTA_CALL_REPORT")))
            wish.talk = !strcmp(found, "1") ? TALK : !strcmp(found, "2") ? TALK_OF_EACH : TALK_NOT;
        else if ((found = value(*environment, "KDELTA_CALL_COUNTS")))
            wish.counts = found;
        else if ((found = value(*environment, "KDELTA_CALL_CACHE")))
            wish.cache = *found ? found : NULL;
    }
    return wish;
}

static enum call_mode mode_of(const struct wish *wish)
{
    if (!wish->mode || !*wish->mode)
        return CALL_NONE;
    if (!strcmp(wish->mode, "direct"))
        return CALL_DIRECT;
    if (!strcmp(wish->mode, "skip"))
        return CALL_SKIP;
#ifdef KDELTA_CALL_TEST
    if (!strcmp(wish->mode, "test"))
        return CALL_TEST;
#endif
    kc_fail("KDELTA_CALL must be direct or skip, not", wish->mode);
}

static uint64_t entry_of(enum call_mode mode, const struct wish *wish)
{
    struct kernel_mode_entries entries = {0};
    long error;

#ifdef KDELTA_CALL_TEST
    if (mode == CALL_TEST)
        return kc_fake_entry(wish->counts);
#endif
    error = kc_raw_call(SYS_prctl, PR_KERNEL_MODE, KERNEL_MODE_ENTRIES, (long)&entries, 0, 0, 0);
    if (error == -EPERM)
        kc_fail(wish->mode, "this program does not run in kernel mode");
    if (error)
        kc_fail(wish->mode, "this kernel has no kernel mode (CONFIG_KERNEL_MODE)");
    if (mode == CALL_SKIP && !entries.call)
        kc_fail(wish->mode, "this kernel has no entry that skips work");
    return mode == CALL_SKIP ? entries.call : entries.syscall;
}

/* Rewrites a segment whose sites have been found, and gives where its stubs are. */
static struct span apply(const struct module *module, struct span text, struct site *sites, unsigned count,
                         enum call_mode mode, uint64_t entry)
{
    struct span room = {.begin = kc_memory_near(module, kc_stubs_bytes(count))};

    if (!room.begin)
        kc_fail("no room for stubs near", module->name);
    room.end = room.begin + kc_stubs_bytes(count);
    kc_memory_protect(text, PROT_READ | PROT_WRITE | PROT_EXEC);
    if (!kc_stubs_make(room, sites, count, mode, entry))
        kc_fail("stubs are too far away from", module->name);
    kc_memory_protect(text, PROT_READ | PROT_EXEC);
    kc_memory_protect(room, PROT_READ | PROT_EXEC);
    return room;
}

static void rewrite(const struct module *module, struct span text, enum call_mode mode, uint64_t entry,
                    const struct wish *wish)
{
    bool keeps = wish->cache && wish->talk != TALK_OF_EACH;
    uint32_t by_state[SITE_STATES] = {0};
    struct span stubs = {module->base, module->base};
    struct site *sites;
    unsigned most, count;
    uint64_t bytes;

    if (keeps && kc_kept_use(wish->cache, module, mode, entry, by_state)) {
        kc_report_sites(module, by_state, wish->talk);
        return;
    }
    most = kc_sites_most(text);
    bytes = ROUND_UP(most * sizeof(struct site) + 1);
    sites = kc_memory_any(bytes);
    count = kc_sites_find(module, text, sites);
    for (unsigned i = 0; i < count; i++)
        by_state[sites[i].state]++;
    if (by_state[SITE_JUMPS] + by_state[SITE_HOPS])
        stubs = apply(module, text, sites, count, mode, entry);
    if (keeps)
        kc_kept_add(wish->cache, module, stubs, mode, entry, by_state);
    kc_report_sites(module, by_state, wish->talk);
    for (unsigned i = 0; wish->talk == TALK_OF_EACH && i < count; i++)
        kc_report_left(module, &sites[i]);
    kc_raw_call(SYS_munmap, (long)sites, (long)bytes, 0, 0, 0, 0);
}

/* The C library gives constructors what main() gets. */
__attribute__((constructor(101))) static void start(int argc, char **argv, char **environment)
{
    struct wish wish = wish_of(environment);
    enum call_mode mode = mode_of(&wish);
    uint64_t entry, bytes = ROUND_UP(MODULES_MOST * sizeof(struct module));
    struct module *modules;
    unsigned count;

    (void)argc, (void)argv;
    if (mode == CALL_NONE)
        return;
    entry = entry_of(mode, &wish);
    modules = kc_memory_any(bytes);
    count = kc_modules_find(modules);
    for (unsigned i = 0; i < count; i++)
        for (unsigned j = 0; j < modules[i].texts; j++)
            rewrite(&modules[i], modules[i].text[j], mode, entry, &wish);
    kc_raw_call(SYS_munmap, (long)modules, (long)bytes, 0, 0, 0, 0);
    kdelta_call_report.mode = mode;
    if (!kdelta_call_report.rewritten)
        kc_fail(wish.mode, "no system call of this program could be rewritten");
    kc_report_end(wish.mode, wish.talk);
}
