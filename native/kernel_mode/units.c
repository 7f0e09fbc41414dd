/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where functions begin and end: the sorted table of .eh_frame_hdr (Linux Standard Base, "exception frames"). */
#include <string.h>

#include "call.h"
#include "insn.h"

/* The table as all linkers write it: 32-bit offsets from the header. Others are not read. */
#define POINTER_PCREL_SDATA4 0x1b
#define COUNT_UDATA4 0x03
#define TABLE_DATAREL_SDATA4 0x3b

#define TAIL_BYTES 16

struct header {
    uint8_t version, frame_pointer_encoding, count_encoding, table_encoding;
    int32_t frame;
    uint32_t count;
    struct {
        int32_t begin, entry;
    } table[];
};

static const struct header *header_of(const struct module *module)
{
    const struct header *header = (const void *)module->unwind_table;

    if (!header || header->version != 1 || header->frame_pointer_encoding != POINTER_PCREL_SDATA4 ||
        header->count_encoding != COUNT_UDATA4 || header->table_encoding != TABLE_DATAREL_SDATA4)
        return NULL;
    return header;
}

/* The width of the range in the entries of a CIE, by the encoding of its pointers ("R"); 0 when it is not read here. */
static unsigned range_bytes(const uint8_t *cie)
{
    const char *augmentation = (const char *)cie + 9;
    const uint8_t *data = cie + 9 + strlen(augmentation) + 1;

    if (augmentation[0] != 'z')
        return augmentation[0] ? 0 : 8;
    for (int fields = 0; fields < 4; fields++) /* code and data alignment, return register, length: LEB128 */
        while (*data++ & 0x80)
            ;
    for (const char *letter = augmentation + 1; *letter; letter++) {
        if (*letter == 'R')
            return (*data & 15) == 0x0b || (*data & 15) == 0x03 ? 4 : 8;
        if (*letter == 'L')
            data++;
        else if (*letter == 'P') /* its encoding, and a pointer of 4 or 8 bytes */
            data += 1 + ((*data & 15) == 0x0b || (*data & 15) == 0x03 ? 4 : 8);
        else if (*letter != 'B') /* and not S, what a signal returns to: its unit begins a byte too early */
            return 0;
    }
    return 8;
}

static struct span unit_at(const struct header *header, uint32_t index)
{
    uint8_t *base = (uint8_t *)header;
    uint8_t *entry = base + header->table[index].entry;
    uint8_t *begin = base + header->table[index].begin;
    uint32_t back, range = 0;
    unsigned width;

    memcpy(&back, entry + 4, 4);
    width = range_bytes(entry + 4 - back);
    if (width)
        memcpy(&range, entry + 8 + width, 4);
    return (struct span){begin, begin + range};
}

/* How many units begin at or before `pc`. */
static uint32_t units_before(const struct header *header, const uint8_t *pc)
{
    uint32_t low = 0, high = header->count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if ((const uint8_t *)header + header->table[middle].begin <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The unwind information of vfork() and clone() ends right before their `syscall`: so a unit goes on for a bit. */
bool kc_unit_of(const struct module *module, const uint8_t *pc, struct span *unit)
{
    const struct header *header = header_of(module);
    uint32_t before = header ? units_before(header, pc) : 0;

    if (!before)
        return false;
    *unit = unit_at(header, before - 1);
    if (unit->end > unit->begin && pc - unit->end < TAIL_BYTES)
        unit->end = unit->end > pc + 2 ? unit->end : (uint8_t *)pc + 2;
    return pc < unit->end;
}

/* All between two functions must be padding: then nothing executes it. */
static bool is_padding(const uint8_t *at, const uint8_t *end)
{
    while (at < end) {
        struct insn insn = kc_insn_read(at, (uint64_t)(end - at) + INSN_LONGEST);

        if (insn.kind != INSN_NOP)
            return false;
        at += insn.length;
    }
    return at == end;
}

static bool is_free(const uint8_t *hole, const struct site *others, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (others[i].hole && hole < others[i].hole + HOLE_BYTES && others[i].hole < hole + HOLE_BYTES)
            return false;
    return true;
}

/* HOLE_BYTES of padding that a jump of two bytes at `jump` reaches, or NULL. */
uint8_t *kc_padding_near(const struct module *module, const uint8_t *jump, const struct site *others, unsigned count)
{
    const struct header *header = header_of(module);
    const uint8_t *lowest = jump + 2 - 128, *highest = jump + 2 + 127;
    uint32_t index = header ? units_before(header, lowest) : 0;

    if (!header)
        return NULL;
    for (index -= index > 0; index + 1 < header->count; index++) {
        struct span gap = {unit_at(header, index).end, (uint8_t *)header + header->table[index + 1].begin};

        if (gap.begin > highest)
            return NULL;
        if (gap.end - gap.begin < HOLE_BYTES || gap.end - gap.begin > 64 || !is_padding(gap.begin, gap.end))
            continue;
        for (uint8_t *hole = gap.begin; hole + HOLE_BYTES <= gap.end; hole++)
            if (hole >= lowest && hole <= highest && is_free(hole, others, count))
                return hole;
    }
    return NULL;
}
