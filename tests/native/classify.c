/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the plugin says of instructions: one in hexadecimal a line in, its facts out. After it, registers may have values: "rcx=0x49".
 * Arguments: an architecture; "thumb".
 */
#include <stdio.h>
#include <stdlib.h>
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

static char line[128];

static uint64_t value(const char *reg)
{
    size_t length = strlen(reg);

    for (const char *at = line; (at = strstr(at, reg)); at++)
        if (at[-1] == ' ' && at[length] == '=')
            return strtoull(at + length + 1, NULL, 0);
    return 0;
}

/* Which of its kind it is, if its bytes or registers say so. */
static void print_detail(const struct arch *arch, const struct insn_facts *f)
{
    uint64_t detail = f->reads ? arch->detail(f, value) : f->detail;
    char name[64] = "";

    if (detail)
        arch->name_detail(f->special, detail, name, sizeof name);
    puts(name);
}

int main(int argc, char **argv)
{
    const struct arch *arch = NULL;
    struct stretch stretch = { .thumb = argc > 2 };

    for (size_t i = 0; argc > 1 && i < sizeof arches / sizeof *arches; i++)
        if (!strcmp(argv[1], arches[i]->target_name))
            arch = arches[i];
    if (!arch)
        return 1;
    while (fgets(line, sizeof line, stdin)) {
        uint8_t bytes[16];
        struct insn_facts f;

        arch->classify(bytes, parse(line, bytes), &stretch, &f);
        printf("%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%s,", f.mark, f.argument, f.can_fault, f.loads, f.stores,
               f.is_string, f.repeats, f.element_bytes, f.leaves_kernel, f.frame_return, f.trap_counts, f.jumps, f.always_there,
               f.calls, f.optional, f.switch_store, f.switch_load, f.calls_function, f.returns, arch->special_names[f.special]);
        print_detail(arch, &f);
    }
    return 0;
}
