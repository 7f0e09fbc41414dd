/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Says what a machine's clock is, on which core programs are to be timed, and by which number two results of one machine are known:
 *
 *     facts [CORE]        the last core that may be used, if none is named
 *
 * It reads the clock: where programs may not, it is killed by a signal, and says nothing. `level` is what timing.h means by that. */
#include "start.h"
#include "timing.h"

static uint64_t machine_hash(void)
{
    char id[64];
    long file = system_call(NR_OPENAT, AT_THIS_FOLDER, (long)"/etc/machine-id", 0, 0, 0, 0), size;
    uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */

    if (file < 0 || (size = system_call(NR_READ, file, (long)id, sizeof id, 0, 0, 0)) < 16)
        return 0;
    for (const char *at = "kdelta"; *at; at++)
        hash = (hash ^ (uint8_t)*at) * 0x100000001b3;
    for (long i = 0; i < size && id[i] != '\n'; i++)
        hash = (hash ^ (uint8_t)id[i]) * 0x100000001b3;
    return hash;
}

static uintptr_t page_bytes(char **argv, int argc)
{
    uintptr_t *at = (uintptr_t *)(argv + argc + 1);

    while (*at++)
        ;
    for (; at[0]; at += 2)
        if (at[0] == 6) /* AT_PAGESZ */
            return at[1];
    return 0;
}

static int has_hypervisor(void)
{
#ifdef __x86_64__
    uint32_t a = 1, b, c = 0, d;

    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    return c >> 31;
#else
    return 0;
#endif
}

static void fact(const char *name, uint64_t number)
{
    say(name);
    say(" ");
    say_number(number);
    say("\n");
}

int main(int argc, char **argv)
{
    unsigned long mask[16] = {0};
    long size = system_call(NR_GETAFFINITY, 0, sizeof mask, (long)mask, 0, 0, 0), last = -1, allowed = 0;

    for (long i = 0; i < size * 8; i++)
        if (mask[i / (8 * (long)sizeof mask[0])] >> i % (8 * (long)sizeof mask[0]) & 1)
            last = i, allowed++;
    if (argc > 1)
        last = number_of(argv[1]);
    if (last < 0 || system_pin(last) < 0)
        return 3;
    fact("core", (uint64_t)last);
    fact("allowed", (uint64_t)allowed);
    fact("machine", machine_hash());
    fact("page", page_bytes(argv, argc));
    fact("hypervisor", (uint64_t)has_hypervisor());
    say("clock " CLOCK_NAME " ");
    say_number(clock_ticks());
    say("\n");
    say_all();
    find_level();
    say("level ");
    say_level(timing_level);
    say_all();
    return 0;
}
