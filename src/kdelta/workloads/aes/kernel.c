/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's side: the same source, and the kernel's own cipher, in the module kdelta_aes. */
#include "bench.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEVICE "/dev/kdelta-aes"

static int device = -1;

static bool setup(const char *name)
{
    device = open(DEVICE, O_RDWR | O_CLOEXEC);
    return device >= 0 || left_out(name, "this kernel has no module kdelta_aes");
}

static bool setup_crypto(const char *name)
{
    const char question[] = "has-crypto 0 0";

    if (!setup(name))
        return false;
    if (write(device, question, strlen(question)) == (ssize_t)strlen(question))
        return true;
    close(device);
    return left_out(name, "this kernel has no cbc(aes)");
}

static void ask(const char *name, const unsigned long counts[2])
{
    char line[128];
    int size = snprintf(line, sizeof line, "%s %lu %lu", name, counts[0], counts[1]);

    if (write(device, line, (size_t)size) != size)
        fail(DEVICE);
}

/* Whose marks are the module's own; a clock is read around whole requests, of which each is many iterations. */
static void measure(const char *name)
{
    char answer[192] = "";
    uint64_t ticks, overhead;

    ask(name, loop_counts);
#ifdef KDELTA_TIMED
    kdelta_begin(name);
    kdelta_iterations_each(loop_counts[1]);
    do {
        ask(name, (const unsigned long[]){0, loop_counts[1]});
        kdelta_iter();
    } while (kdelta_wants_more());
    kdelta_end();
#endif
    if (pread(device, answer, sizeof answer - 1, 0) < 0)
        fail(DEVICE);
    if (sscanf(answer, "%" SCNu64 " %" SCNu64, &ticks, &overhead) != 2)
        fail("its answer");
    note_clock(name, ticks, overhead);
}

static void teardown(void)
{
    close(device);
}

const struct operation kernel_operations[] = {
    {"kernel-encrypt", setup, measure, teardown},
    {"kernel-decrypt", setup, measure, teardown},
    {"kernel-crypto-encrypt", setup_crypto, measure, teardown},
    {"kernel-crypto-decrypt", setup_crypto, measure, teardown},
    {0},
};
