/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds where `syscall` stands, and which instruction before it can make room for a jump.
 *
 * The `syscall` itself stays, and so does all behind it: the kernel comes back to there, as it does from a call that
 * was not rewritten. Only one instruction before it is overwritten, which nothing can jump into the middle of. What
 * jumps to an instruction between the two still finds it there, and calls by `syscall`.
 */
#include <emmintrin.h>
#include <string.h>

#include "call.h"
#include "insn.h"

#define JUMP_BYTES 5
#define HOP_BYTES 2
#define SIGRETURN 15

/* Reads a function from its beginning, so that it is known where instructions begin, up to each of its sites. */
struct reader {
    struct span unit;
    uint8_t *at; /* the next instruction */
    struct insn insn[CHAIN_MOST]; /* the last ones, at their number modulo CHAIN_MOST */
    uint8_t *begins[CHAIN_MOST];
    unsigned count;
};

static uint8_t *next_site(uint8_t *at, uint8_t *end)
{
    const __m128i second = _mm_set1_epi8(0x05);

    for (at++; at < end; at++) {
        while (at + 16 <= end && !_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128((const void *)at), second)))
            at += 16;
        if (at < end && *at == 0x05 && at[-1] == 0x0f)
            return at - 1;
    }
    return NULL;
}

unsigned kc_sites_most(struct span text)
{
    unsigned count = 0;

    for (uint8_t *at = next_site(text.begin, text.end); at; at = next_site(at + 1, text.end))
        count++;
    return count;
}

static enum site_state read_to(struct reader *reader, uint8_t *site)
{
    while (reader->at < site) {
        unsigned slot = reader->count % CHAIN_MOST;

        reader->insn[slot] = kc_insn_read(reader->at, (uint64_t)(reader->unit.end - reader->at));
        if (reader->insn[slot].kind == INSN_UNKNOWN)
            return SITE_UNREADABLE;
        reader->begins[slot] = reader->at;
        reader->at += reader->insn[slot].length;
        reader->count++;
    }
    return reader->at == site ? SITE_JUMPS : SITE_NONE;
}

static bool moves(const struct insn *insn)
{
    return insn->kind == INSN_MOVES || insn->kind == INSN_NOP || insn->kind == INSN_JCC;
}

/* The nearest instruction before a site that has room for a jump of so many bytes, and all from it on can be moved. */
static uint8_t *with_room(const struct reader *reader, unsigned bytes)
{
    for (unsigned i = 1; i <= CHAIN_MOST && i <= reader->count; i++) {
        unsigned slot = (reader->count - i) % CHAIN_MOST;

        if (!moves(&reader->insn[slot]))
            return NULL;
        if (reader->insn[slot].length >= bytes)
            return reader->begins[slot];
    }
    return NULL;
}

/* Whether a branch of the function leads behind `from`, so that calls could miss the jump that is put there. */
static bool is_entered(struct span unit, const uint8_t *from, const uint8_t *site)
{
    for (const uint8_t *at = unit.begin; at < unit.end;) {
        struct insn insn = kc_insn_read(at, (uint64_t)(unit.end - at));

        if (insn.kind == INSN_UNKNOWN)
            return false;
        at += insn.length;
        if ((insn.kind == INSN_JCC || insn.kind == INSN_JUMP) && at + insn.offset > from &&
            at + insn.offset <= site)
            return true;
    }
    return false;
}

/* By their bytes, since unwind information for what a signal returns to begins a byte too early, where no instruction
 * begins: mov $15, %rax or mov $15, %eax.
 */
static bool is_sigreturn(struct span text, const uint8_t *site)
{
    static const uint8_t wide[] = {0x48, 0xc7, 0xc0, SIGRETURN, 0, 0, 0}, narrow[] = {0xb8, SIGRETURN, 0, 0, 0};

    return (site - text.begin >= 7 && !memcmp(site - 7, wide, 7)) ||
           (site - text.begin >= 5 && !memcmp(site - 5, narrow, 5));
}

static void choose(const struct module *module, const struct reader *reader, struct site *site,
                   const struct site *others, unsigned count)
{
    uint8_t *jump = with_room(reader, JUMP_BYTES);
    uint8_t *hop = with_room(reader, HOP_BYTES);
    bool is_last = jump && jump == reader->begins[(reader->count - 1) % CHAIN_MOST];

    site->from = jump;
    site->state = SITE_JUMPS;
    if (is_last || (jump && !is_entered(reader->unit, jump, site->at)))
        return;
    site->hole = hop ? kc_padding_near(module, hop, others, count) : NULL;
    if (site->hole) {
        site->from = hop;
        site->state = SITE_HOPS;
    } else if (!jump) {
        site->state = SITE_NO_ROOM;
    }
}

static enum site_state judge(const struct module *module, struct span text, struct reader *reader, struct site *site,
                             const struct site *others, unsigned count)
{
    struct span unit;

    if (module->vdso)
        return SITE_VDSO;
    if (is_sigreturn(text, site->at))
        return SITE_SIGRETURN;
    if (!kc_unit_of(module, site->at, &unit))
        return SITE_NO_UNIT;
    if (unit.begin != reader->unit.begin || reader->at > site->at)
        *reader = (struct reader){.at = unit.begin};
    reader->unit = unit;
    site->state = read_to(reader, site->at);
    if (site->state == SITE_JUMPS)
        choose(module, reader, site, others, count);
    return site->state;
}

unsigned kc_sites_find(const struct module *module, struct span text, struct site *sites)
{
    struct reader reader = {.count = 0};
    unsigned count = 0;

    for (uint8_t *at = next_site(text.begin, text.end); at; at = next_site(at + 1, text.end)) {
        sites[count] = (struct site){.at = at};
        if (at != kc_raw_call_site)
            sites[count].state = judge(module, text, &reader, &sites[count], sites, count);
        count += at != kc_raw_call_site && sites[count].state != SITE_NONE;
    }
    return count;
}
