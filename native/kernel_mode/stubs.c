/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes the stubs, and the jumps to them.
 *
 * A stub is what was overwritten, at another address, and the call:
 *
 *     (the moved instructions)
 *     lea after_the_syscall(%rip), %rcx
 *     mov $0x202, %r11d; cli               only for a direct call of entry_SYSCALL_64
 *     jmp *entry(%rip)
 *
 * The entry's address is on the stub's own page. So once `cli` is executed, there is no page fault before the kernel.
 */
#include <string.h>

#include "call.h"
#include "insn.h"

#define FLAGS_AFTERWARDS 0x202 /* interrupts on, and the bit that is always set */
#define STUB_BYTES_MOST (CHAIN_MOST * INSN_LONGEST + 7 + 6 + 1 + 6)
#define STUB_ALIGNMENT 8
#define STUBS_A_PAGE ((PAGE_BYTES - sizeof(uint64_t)) / (STUB_BYTES_MOST + STUB_ALIGNMENT)) /* at least */

struct writer {
    uint8_t *at;
    bool in_reach; /* no target was further away than 32 bits can say */
};

static void put(struct writer *writer, const void *bytes, unsigned count)
{
    memcpy(writer->at, bytes, count);
    writer->at += count;
}

#define PUT(writer, ...) put(writer, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* The distance to `target` from `end`, where the instruction ends. */
static void put_distance(struct writer *writer, const uint8_t *target, const uint8_t *end)
{
    int64_t distance = target - end;
    int32_t short_distance = (int32_t)distance;

    writer->in_reach &= short_distance == distance;
    put(writer, &short_distance, 4);
}

static void put_moved(struct writer *writer, const uint8_t *from, const uint8_t *to)
{
    while (from < to) {
        struct insn insn = kc_insn_read(from, (uint64_t)(to - from));
        const uint8_t *target = from + insn.length + insn.offset;

        if (insn.kind == INSN_JCC) {
            PUT(writer, 0x0f, 0x80 | insn.condition);
            put_distance(writer, target, writer->at + 4);
        } else if (insn.relative_at) {
            const uint8_t *end = writer->at + insn.length;

            put(writer, from, insn.relative_at);
            put_distance(writer, target, end);
            put(writer, from + insn.relative_at + 4, insn.length - insn.relative_at - 4u);
        } else {
            put(writer, from, insn.length);
        }
        from += insn.length;
    }
}

static bool make_stub(struct writer *writer, const struct site *site, enum call_mode mode, const uint8_t *entry)
{
    const uint32_t flags = FLAGS_AFTERWARDS;

    put_moved(writer, site->from, site->at);
    PUT(writer, 0x48, 0x8d, 0x0d); /* lea ...(%rip), %rcx */
    put_distance(writer, site->at + 2, writer->at + 4);
    if (mode == CALL_DIRECT) {
        PUT(writer, 0x41, 0xbb); /* mov $..., %r11d */
        put(writer, &flags, 4);
        PUT(writer, 0xfa); /* cli */
    }
    PUT(writer, 0xff, 0x25); /* jmp *...(%rip) */
    put_distance(writer, entry, writer->at + 4);
    return writer->in_reach;
}

static bool put_jump(uint8_t *at, const uint8_t *target)
{
    struct writer writer = {at, true};

    PUT(&writer, 0xe9);
    put_distance(&writer, target, at + 5);
    return writer.in_reach;
}

/* The room that so many stubs may need; what is not written to costs nothing. */
uint64_t kc_stubs_bytes(unsigned sites)
{
    return (sites / STUBS_A_PAGE + 1) * PAGE_BYTES;
}

/* Makes the stubs in `room`, which is writable, and rewrites the text of the sites, which is so, too; false when
 * something was too far away, and the text is useless then.
 */
bool kc_stubs_make(struct span room, struct site *sites, unsigned count, enum call_mode mode, uint64_t entry)
{
    struct writer writer = {room.begin, true};
    uint8_t *page = NULL;

    for (struct site *site = sites; site < sites + count; site++) {
        uint8_t *stub;

        if (site->state != SITE_JUMPS && site->state != SITE_HOPS)
            continue;
        if (!page || writer.at + STUB_BYTES_MOST > page + PAGE_BYTES) {
            page = page ? page + PAGE_BYTES : room.begin;
            if (page + PAGE_BYTES > room.end)
                return false;
            writer.at = page;
            put(&writer, &entry, sizeof(entry));
        }
        stub = writer.at;
        if (!make_stub(&writer, site, mode, page))
            return false;
        writer.at += -(uintptr_t)writer.at & (STUB_ALIGNMENT - 1);
        if (site->state == SITE_HOPS) {
            site->from[0] = 0xeb;
            site->from[1] = (uint8_t)(site->hole - (site->from + 2));
        }
        if (!put_jump(site->state == SITE_HOPS ? site->hole : site->from, stub))
            return false;
    }
    return true;
}
