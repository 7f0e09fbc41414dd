/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Burns instructions until a moment, from starts that are one instruction apart, and prints how long after the moment the clock's next
 * step was found to begin: the same number each time, if each burn ended at the same instruction.
 */
#include <stdio.h>

#include "kdelta_clock.h"

#define STARTS 64
#define APART_NS 200000

static void nops(unsigned int n)
{
    while (n--)
        __asm__ volatile("nop");
}

int main(void)
{
    unsigned int step_ns = kdelta_clock_step_ns();
    uint64_t first = (kdelta_clock_now() / APART_NS + 10) * APART_NS;
    long long late[STARTS];

    for (unsigned int i = 0; i < STARTS; i++) {
        uint64_t moment = first + i * APART_NS;

        nops(i);
        kdelta_clock_burn_until(moment);
        late[i] = (long long)(kdelta_clock_edge(step_ns) * step_ns) - (long long)moment;
    }
    for (unsigned int i = 0; i < STARTS; i++)
        printf("%lld\n", late[i]);
    return 0;
}
