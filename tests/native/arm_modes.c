/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which instruction set the plugin takes blocks for: one a line in, of an address and instructions in hexadecimal; "thumb" or "a32" out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch.h"

int main(void)
{
    char line[256];

    while (fgets(line, sizeof line, stdin)) {
        static uint8_t bytes[16][4];
        struct insn insns[16];
        struct stretch stretch;
        size_t n = 0;
        char *word = strtok(line, " \n");
        uint64_t vaddr = strtoull(word, NULL, 16);

        while (n < 16 && (word = strtok(NULL, " \n"))) {
            size_t size = strlen(word) / 2;

            for (size_t i = 0; i < size && i < 4; i++)
                sscanf(word + 2 * i, "%2hhx", &bytes[n][i]);
            insns[n] = (struct insn){ .vaddr = vaddr, .bytes = bytes[n], .size = size };
            vaddr += size;
            n++;
        }
        arch_arm.enter(&stretch, insns, n);
        puts(stretch.thumb ? "thumb" : "a32");
    }
    return 0;
}
