/* SPDX-License-Identifier: GPL-2.0-or-later */
/* x86-64: an instruction's bytes, taken one by one: prefixes, opcode, ModRM. */
#ifndef KDELTA_X86_DECODED_H
#define KDELTA_X86_DECODED_H

#include <stdbool.h>
#include <stdint.h>

/* One instruction, decoded as far as the questions need it. */
struct decoded {
    const uint8_t *next, *end;
    bool operand16, rep, repne, lock, wide, gs, base_extended, reg_extended;
    uint8_t modrm;
    bool has_modrm, memory;
};

static inline int take(struct decoded *d)
{
    return d->next < d->end ? *d->next++ : -1;
}

static inline unsigned reg_field(const struct decoded *d)
{
    return d->modrm >> 3 & 7;
}

static inline void take_modrm(struct decoded *d)
{
    int byte = take(d);

    d->has_modrm = true;
    d->modrm = byte < 0 ? 0 : (uint8_t)byte;
    d->memory = d->modrm < 0xc0;
}

static inline int take_prefixes(struct decoded *d)
{
    for (;;) {
        int byte = take(d);

        switch (byte) {
        case 0x66: d->operand16 = true; continue;
        case 0xf2: d->repne = true; continue;
        case 0xf3: d->rep = true; continue;
        case 0xf0: d->lock = true; continue;
        case 0x65: d->gs = true; continue;
        case 0x67: case 0x2e: case 0x36: case 0x3e: case 0x26: case 0x64: continue;
        }
        if (byte >= 0x40 && byte <= 0x4f) { /* REX; the opcode follows */
            d->wide = byte & 8;
            d->base_extended = byte & 1;
            d->reg_extended = byte & 4;
            return take(d);
        }
        return byte;
    }
}

#endif
