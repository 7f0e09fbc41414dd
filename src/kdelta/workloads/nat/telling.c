/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the workload tells the host of its operations, and how it ends when one fails or is left out. */
#include "nat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kdelta.h"
#include "kdelta_failure.h"

/* A message of one type for all operations; sent once, at the end. Their processes share it. */
struct lines {
    char text[8 << 10];
    size_t size;
};

static const char *const types[TOLD_KINDS] = {[TOLD_PACKETS] = "packets", [TOLD_CLOCK] = "region-clock", [TOLD_LEFT_OUT] = "warning"};

static struct lines *told;
static const struct operation *current;
static bool named;

void tell_start(bool by_name)
{
    named = by_name;
    told = mmap(NULL, TOLD_KINDS * sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (told == MAP_FAILED)
        fail("no memory");
}

void tell_operation(const struct operation *op)
{
    current = op;
}

void tell(enum told kind, const char *format, ...)
{
    struct lines *lines = &told[kind];
    size_t left = sizeof lines->text - lines->size;
    va_list arguments;
    int size;

    va_start(arguments, format);
    size = vsnprintf(lines->text + lines->size, left, format, arguments);
    va_end(arguments);
    if (size < 0 || (size_t)size >= left)
        fail("too many regions to tell of");
    lines->size += (size_t)size;
}

void tell_all(void)
{
    for (enum told kind = 0; kind < TOLD_KINDS; kind++) {
        if (!told[kind].size)
            continue;
        kdelta_send(types[kind], strlen(types[kind]));
        kdelta_send("\n", 1);
        kdelta_message(told[kind].text, told[kind].size);
    }
}

/* Why a workload fails is told to the host as well. */
void fail(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    kdelta_fail("nat", current ? current->name : "start", format, arguments);
}

void lacks(const char *needed)
{
    if (named || !current->optional)
        fail("this workload needs %s, built in or as a module that can be loaded", needed);
    tell(TOLD_LEFT_OUT, "%s is left out: it needs %s\n", current->name, needed);
    dprintf(STDERR_FILENO, "nat: %s is left out: it needs %s\n", current->name, needed);
    _exit(LEFT_OUT);
}

long must(long result, const char *what)
{
    if (__builtin_expect(result < 0, 0))
        fail("%s: %s", what, strerror(errno));
    return result;
}
