/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zstd: text packed at three levels in small frames, and unpacked again. */
#include <string.h>

#include "pass.h"
#include "zstd.h"

enum { SIZE = 8 << 10, FRAME = 2 << 10 };

static char text[SIZE], packed[FRAME * 2], unpacked[FRAME];
static ZSTD_CCtx *packer;
static ZSTD_DCtx *unpacker;

void prepare(void)
{
    fill_with_text(text, SIZE);
    packer = ZSTD_createCCtx();
    unpacker = ZSTD_createDCtx();
    check(packer && unpacker, "contexts");
}

void pass(void)
{
    static const int levels[] = {1, 3, 7};

    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        for (size_t at = 0; at < SIZE; at += FRAME) {
            size_t size = ZSTD_compressCCtx(packer, packed, sizeof packed, text + at, FRAME, levels[i]);

            check(!ZSTD_isError(size), "packed");
            check(ZSTD_decompressDCtx(unpacker, unpacked, FRAME, packed, size) == FRAME, "unpacked");
            check(!memcmp(text + at, unpacked, FRAME), "the same");
        }
}
