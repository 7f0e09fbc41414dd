/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the plugin says of instructions: one in hexadecimal a line in, its facts out. Arguments: an architecture; "thumb". */
#include <stdio.h>
#include <string.h>

#include "arch.h"

static const struct arch *const arches[] = { &arch_x86_64, &arch_arm, &arch_aarch64, &arch_riscv64 };

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

int main(int argc, char **argv)
{
    const struct arch *arch = NULL;
    struct stretch stretch = { .thumb = argc > 2 };
    char line[64];

    for (size_t i = 0; argc > 1 && i < sizeof arches / sizeof *arches; i++)
        if (!strcmp(argv[1], arches[i]->target_name))
            arch = arches[i];
    if (!arch)
        return 1;
    while (fgets(line, sizeof line, stdin)) {
        uint8_t bytes[16];
        struct insn_facts f;

        arch->classify(bytes, parse(line, bytes), &stretch, &f);
        printf("%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%s\n", f.mark, f.argument, f.can_fault, f.loads, f.stores,
               f.is_string, f.repeats, f.element_bytes, f.leaves_kernel, f.frame_return, f.trap_counts, f.jumps, f.always_there,
               f.calls, f.optional, f.switch_store, f.switch_load, f.calls_function, f.returns, arch->special_names[f.special]);
    }
    return 0;
}
