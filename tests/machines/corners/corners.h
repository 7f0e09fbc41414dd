/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the corner cases share: their table, and how they tell the clock. */
#ifndef CORNERS_H
#define CORNERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kdelta_clock.h"

enum { PAGE = 4096, AROUND = 1 << 16 }; /* the kernel maps the file pages around a fault that far */

struct corner {
    const char *name;
    void (*setup)(void), (*go)(void);
    bool ends; /* its region itself, and tells the clock alone */
};

extern const struct corner code_corners[], task_corners[], trap_corners[];

void fail(const char *what);
void note_clock(const char *name, uint64_t begin, uint64_t end);

#endif
