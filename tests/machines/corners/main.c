/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs each corner case as a region, and tells how far the clock went in it. */
#include "corners.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char lines[1 << 14];
static size_t line_bytes;

void fail(const char *what)
{
    perror(what);
    _exit(1);
}

void note_clock(const char *name, uint64_t begin, uint64_t end)
{
    line_bytes += (size_t)snprintf(lines + line_bytes, sizeof lines - line_bytes, "%s %llu %llu\n", name,
                                   (unsigned long long)(end - begin), (unsigned long long)kdelta_clock_overhead());
}

static void measure(const struct corner *c)
{
    if (c->setup)
        c->setup();
    fflush(NULL);
    kdelta_announce(c->name);
    if (c->ends) {
        c->go();
        return;
    }
    uint64_t begin = kdelta_clock_begin();

    c->go();
    uint64_t end = kdelta_clock_end();

    note_clock(c->name, begin, end);
}

/* All of them, those that are named, or all but those that are named after "but". */
static bool wanted(int argc, char **argv, const char *name)
{
    bool but = argc > 1 && !strcmp(argv[1], "but");

    for (int i = 1 + but; i < argc; i++)
        if (!strcmp(argv[i], name))
            return !but;
    return argc == 1 || but;
}

int main(int argc, char **argv)
{
    static const struct corner *const tables[] = { code_corners, task_corners, trap_corners, NULL };

    if (argc == 2 && !strcmp(argv[1], "exec"))
        return 0;
    for (const struct corner *const *table = tables; *table; table++)
        for (const struct corner *c = *table; c->name; c++)
            if (wanted(argc, argv, c->name)) {
                measure(c);
                printf("%s\n", c->name);
            }
    kdelta_send("region-clock\n", strlen("region-clock\n"));
    kdelta_message(lines, line_bytes);
    return 0;
}
