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

/* The instructions before a site, the last one first. */
struct before {
    struct insn insn[CHAIN_MOST];
    uint8_t *at[CHAIN_MOST];
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

/* Reads from the function's beginning, so that it is known where instructions begin. */
static enum site_state read_before(struct span unit, uint8_t *site, struct before *before)
{
    uint8_t *at = unit.begin;

    before->count = 0;
    while (at < site) {
        struct insn insn = kc_insn_read(at, (uint64_t)(unit.end - at));

        if (insn.kind == INSN_UNKNOWN)
            return SITE_UNREADABLE;
        for (unsigned i = CHAIN_MOST - 1; i > 0; i--) {
            before->insn[i] = before->insn[i - 1];
            before->at[i] = before->at[i - 1];
        }
        before->insn[0] = insn;
        before->at[0] = at;
        before->count += before->count < CHAIN_MOST;
        at += insn.length;
    }
    return at == site ? SITE_JUMPS : SITE_NONE;
}

static bool moves(const struct insn *insn)
{
    return insn->kind == INSN_MOVES || insn->kind == INSN_NOP || insn->kind == INSN_JCC;
}

/* The nearest instruction before a site that has room for a jump of so many bytes, and all from it on can be moved. */
static uint8_t *with_room(const struct before *before, unsigned bytes)
{
    for (unsigned i = 0; i < before->count && moves(&before->insn[i]); i++)
        if (before->insn[i].length >= bytes)
            return before->at[i];
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

static void choose(const struct module *module, struct span unit, struct site *site, const struct before *before,
                   const struct site *others, unsigned count)
{
    uint8_t *jump = with_room(before, JUMP_BYTES);
    uint8_t *hop = with_room(before, HOP_BYTES);

    site->from = jump;
    site->state = SITE_JUMPS;
    if (jump && (jump == before->at[0] || !is_entered(unit, jump, site->at)))
        return;
    site->hole = hop ? kc_padding_near(module, hop, others, count) : NULL;
    if (site->hole) {
        site->from = hop;
        site->state = SITE_HOPS;
    } else if (!jump) {
        site->state = SITE_NO_ROOM;
    }
}

static enum site_state judge(const struct module *module, struct span text, struct site *site,
                             const struct site *others, unsigned count)
{
    struct span unit;
    struct before before;

    if (module->vdso)
        return SITE_VDSO;
    if (is_sigreturn(text, site->at))
        return SITE_SIGRETURN;
    if (!kc_unit_of(module, site->at, &unit))
        return SITE_NO_UNIT;
    site->state = read_before(unit, site->at, &before);
    if (site->state == SITE_JUMPS)
        choose(module, unit, site, &before, others, count);
    return site->state;
}

unsigned kc_sites_find(const struct module *module, struct span text, struct site *sites)
{
    unsigned count = 0;

    for (uint8_t *at = next_site(text.begin, text.end); at; at = next_site(at + 1, text.end)) {
        sites[count] = (struct site){.at = at};
        if (at != kc_raw_call_site)
            sites[count].state = judge(module, text, &sites[count], sites, count);
        count += at != kc_raw_call_site && sites[count].state != SITE_NONE;
    }
    return count;
}
