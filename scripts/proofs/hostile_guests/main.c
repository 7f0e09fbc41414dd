/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A hostile program: its first word is the kind; without one it prints all kinds. scripts/proofs/hostile.py runs each. */
#include "kinds.h"

#include <stdio.h>

const char *self;

int main(int argc, char **argv)
{
    const struct kind *const tables[] = {resource_kinds, message_kinds, mark_kinds, system_kinds};

    self = argv[0];
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const struct kind *kind = tables[i]; kind->name; kind++)
            if (argc < 2)
                puts(kind->name);
            else if (!strcmp(argv[1], kind->name)) {
                kind->act();
                return 0;
            }
    return argc < 2 ? 0 : 99;
}
