/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the plugin's x86-64 part says of instructions: one in hexadecimal a line in, its facts out. */
#include <stdio.h>

#include "arch.h"

static size_t parse(const char *line, uint8_t bytes[static 16])
{
    size_t size = 0;
    unsigned value;

    while (size < 16 && sscanf(line, "%2x", &value) == 1) {
        bytes[size++] = (uint8_t)value;
        line += 2;
    }
    return size;
}

int main(void)
{
    char line[64];

    while (fgets(line, sizeof line, stdin)) {
        uint8_t bytes[16];
        struct insn_facts f;

        arch_x86_64.classify(bytes, parse(line, bytes), &f);
        printf("%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%s\n", f.mark, f.argument, f.can_fault, f.loads, f.stores, f.is_string,
               f.repeats, f.element_bytes, f.leaves_kernel, f.frame_return, f.trap_counts,
               f.jumps, arch_x86_64.special_names[f.special]);
    }
    return 0;
}
