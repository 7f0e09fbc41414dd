/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Does one of the cases. */
#include "calling.h"

#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"registers", case_registers}, {"red-zone", case_red_zone}, {"six", case_six},
    {"eintr", case_eintr},         {"restart", case_restart},   {"stopped", case_stopped},
    {"storm", case_storm},         {"longjmp", case_longjmp},   {"altstack", case_altstack},
    {"threads", case_threads},     {"cancel", case_cancel},     {"fork-in-thread", case_fork_in_thread},
    {"fork", case_fork},           {"vfork", case_vfork},       {"spawn", case_spawn},
    {"exec", case_exec},           {"own-environment", case_own_environment},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof(cases) / sizeof(*cases); i++) {
        if (strcmp(argv[1], cases[i].name))
            continue;
        cases[i].run();
        puts("as expected");
        return 0;
    }
    fprintf(stderr, "calling CASE\n");
    return 2;
}
