/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Waits until the kernel's own work after boot is done. Waiting is free: a guest that idles skips its virtual time.
 *
 * Debian's kernels, quiet: 13 to 19 context switches and 0.03 to 0.05 ms of other tasks' work a second, this loop's included.
 */
#include "agent.h"

#include <stdlib.h>
#include <string.h>

#define LEAST_SECONDS 20 /* of uptime: work that was put off to a later time shows up until then */
#define MOST_SECONDS 120
#define QUIET_SECONDS 5  /* in a row */
#define QUIET_SWITCHES 100    /* a CPU */
#define QUIET_WORK_NS 1000000 /* a CPU */

#define NS_PER_SECOND 1000000000

struct activity {
    uint64_t switches;
    uint64_t work_ns; /* of all tasks but this one; always 0 on a kernel without CONFIG_SCHEDSTATS */
};

/* The number that stands in the place `index` behind a word at the start of a line. */
static uint64_t number_after(const char *text, const char *word, int index)
{
    const char *p = strstr(text, word);
    uint64_t value = 0;

    if (!p)
        return 0;
    p += strlen(word);
    for (int i = 0; i <= index; i++)
        value = strtoull(p, (char **)&p, 10);
    return value;
}

#ifdef SEVERAL_CPUS

#define MOST_BYTES (256 << 10)

static unsigned cpus = 1; /* lines of them */

static uint64_t work_of_cpus(const char *schedstat)
{
    uint64_t sum = 0;

    cpus = 0;
    for (const char *p = schedstat; (p = strstr(p, "\ncpu")); cpus++) {
        strtoull(p += strlen("\ncpu"), (char **)&p, 10);
        sum += number_after(p, " ", 6);
    }
    cpus += !cpus;
    return sum;
}

#else /* a guest of one CPU starts in another state whenever a byte of its agent changes */

#define MOST_BYTES (32 << 10)

static const unsigned cpus = 1;

static uint64_t work_of_cpus(const char *schedstat)
{
    return number_after(schedstat, "\ncpu0 ", 6);
}

#endif

static struct activity activity(void)
{
    static char text[MOST_BYTES];
    struct activity a;

    read_file("/proc/stat", text, sizeof text);
    a.switches = number_after(text, "\nctxt ", 0);
    read_file("/proc/schedstat", text, sizeof text);
    a.work_ns = work_of_cpus(text);
    if (a.work_ns) {
        read_file("/proc/self/schedstat", text, sizeof text);
        a.work_ns -= number_after(text, "", 0);
    }
    return a;
}

struct quiet quiet_wait(void)
{
    struct activity before = activity();
    struct quiet quiet = {.seconds = now_ns() / NS_PER_SECOND};
    int quiet_seconds = 0;

    while (quiet.seconds < MOST_SECONDS && (quiet.seconds < LEAST_SECONDS || quiet_seconds < QUIET_SECONDS)) {
        struct activity after;

        sleep_until_ns(++quiet.seconds * NS_PER_SECOND);
        after = activity();
        quiet.switches = after.switches - before.switches;
        quiet.work_ns = after.work_ns - before.work_ns;
        before = after;
        if (quiet.switches <= cpus * QUIET_SWITCHES && quiet.work_ns <= cpus * QUIET_WORK_NS)
            quiet_seconds++;
        else
            quiet_seconds = 0;
    }
    quiet.reached = quiet_seconds >= QUIET_SECONDS;
    return quiet;
}
