/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a held-out program gives: prepare() once, and pass(), which leaves everything as it found it, so that each pass is the
 * same work. */
#ifndef PASS_H
#define PASS_H

#include <stddef.h>
#include <stdint.h>

void prepare(void);
void pass(void);

void check(int is_right, const char *what); /* ends the program unless it is */

/* xorshift: the same numbers everywhere. */
static inline uint32_t draw_number(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 20);
}

/* Text that compresses as prose does, about: words of a list of 256, some more often than others. */
static inline void fill_with_text(char *text, size_t size)
{
    uint64_t state = 88172645463325252ull;
    size_t at = 0;

    while (at < size) {
        uint32_t number = draw_number(&state), word = number & 255 & (number >> 8), length = 2 + word % 7;

        for (uint32_t i = 0; i < length && at < size; i++)
            text[at++] = (char)('a' + (word * 7 + i * (word + 3)) % 26);
        if (at < size)
            text[at++] = number >> 28 ? ' ' : '\n';
    }
}

#endif
