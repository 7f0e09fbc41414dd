/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cipher in user space. The program that has it compiled with the kernel's flags has only these operations. */
#include "bench.h"

#include <string.h>

#ifdef KERNEL_FLAGS
#define NAME(direction) "user-kflags-" direction
#else
#define NAME(direction) "user-" direction
#endif

static bool setup(const char *name)
{
    (void)name;
    memset(pieces.result, 0, PIECES_BYTES);
    return true;
}

static void encrypt(const char *name)
{
    uint64_t ticks;

    measure_encrypt(&pieces, name, loop_counts, &ticks);
    note_clock(name, ticks, kdelta_clock_overhead());
    check_result(pieces.sealed);
}

static void decrypt(const char *name)
{
    uint64_t ticks;

    measure_decrypt(&pieces, name, loop_counts, &ticks);
    note_clock(name, ticks, kdelta_clock_overhead());
    check_result(pieces.plain);
}

const struct operation own_operations[] = {
    {NAME("encrypt"), setup, encrypt, NULL},
    {NAME("decrypt"), setup, decrypt, NULL},
    {0},
};
