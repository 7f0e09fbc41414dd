/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows that a database gave, and their checksum. */
#include "wisconsin.h"

#include <stdlib.h>
#include <string.h>

/* FNV-1a of 64 bits (http://www.isthe.com/chongo/tech/comp/fnv). */
#define FNV_START 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u

void rows_clear(struct rows *rows)
{
    rows->size = 0;
    rows->count = 0;
}

/* Adds a field of the row that is being taken in. */
void rows_field(struct rows *rows, const char *value, bool last)
{
    size_t size = value ? strlen(value) : 0;

    if (rows->room < rows->size + size + 1) {
        rows->room = 2 * rows->room + size + 1;
        rows->text = realloc(rows->text, rows->room);
        if (!rows->text)
            fail("no memory for the rows of a result");
    }
    memcpy(rows->text + rows->size, value ? value : "", size);
    rows->size += size;
    rows->text[rows->size++] = last ? '\0' : '|';
    rows->count += last;
}

uint64_t rows_checksum(const struct rows *rows)
{
    const char *p = rows->text, *end = p + rows->size;
    uint64_t sum = 0;

    while (p < end) {
        uint64_t hash = FNV_START;

        for (; *p; p++)
            hash = (hash ^ (uint8_t)*p) * FNV_PRIME;
        sum += hash;
        p++;
    }
    return sum;
}
