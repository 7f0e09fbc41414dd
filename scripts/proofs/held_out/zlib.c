/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zlib: text packed at three levels, unpacked again, and its checksums. */
#include <string.h>

#include "pass.h"
#include "zlib.h"

enum { SIZE = 5 << 10 };

static unsigned char text[SIZE], packed[SIZE + 1024], unpacked[SIZE];

void prepare(void)
{
    fill_with_text((char *)text, SIZE);
}

void pass(void)
{
    static const int levels[] = {1, 6, 9};

    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        uLongf size = sizeof packed, back = SIZE;

        check(compress2(packed, &size, text, SIZE, levels[i]) == Z_OK, "packed");
        check(uncompress(unpacked, &back, packed, size) == Z_OK && back == SIZE, "unpacked");
        check(!memcmp(text, unpacked, SIZE), "the same");
        check(crc32(0, packed, (uInt)size) != 0, "checksum");
    }
}
