/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The start of a held-out program: timed and traced by timing.h of the calibration. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/personality.h>
#include <unistd.h>

#include "pass.h"
#include "timing.h"

/* As many as the generated programs have: a check times and traces that many. */
enum { PASSES = 8 };

void check(int is_right, const char *what)
{
    if (is_right)
        return;
    fprintf(stderr, "failed: %s\n", what);
    exit(1);
}

static void one_pass(unsigned int k)
{
    (void)k;
    pass();
}

/* Stack and heap at the same addresses in each process and each link: what data miss is not to differ. */
static void fix_addresses(char **argv)
{
    int now = personality(0xffffffff);

    if (now == -1 || now & ADDR_NO_RANDOMIZE || personality((unsigned long)now | ADDR_NO_RANDOMIZE) == -1)
        return;
    execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
    if (argc > 1 && same_text(argv[1], "time"))
        fix_addresses(argv);
    prepare();
    return timing_main(argc, argv, PASSES, one_pass);
}
