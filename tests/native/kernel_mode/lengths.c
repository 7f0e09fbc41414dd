/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The length and kind of instructions: each line of stdin has the bytes of one in hexadecimal digits. */
#include <stdio.h>
#include <stdlib.h>

#include "insn.h"

int main(void)
{
    char line[256];

    while (fgets(line, sizeof(line), stdin)) {
        uint8_t bytes[64] = {0};
        unsigned count = 0;
        char *at = line, *end;

        for (unsigned long byte; byte = strtoul(at, &end, 16), end != at && count < 32; at = end)
            bytes[count++] = (uint8_t)byte;
        struct insn insn = kc_insn_read(bytes, sizeof(bytes));
        struct insn cut = kc_insn_read(bytes, count - 1);

        printf("%d %d %d %d %d\n", insn.length, insn.kind, insn.relative_at, insn.offset, cut.kind == INSN_UNKNOWN);
    }
    return 0;
}
