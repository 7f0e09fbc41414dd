/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A length decoder for x86-64, after the opcode maps of the Intel SDM (volume 2, appendix A). */
#include "insn.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* What follows an opcode, and what the instruction is. */
enum {
    MODRM = 1,
    IMM8 = 2,
    IMM16 = 4,
    IMM32 = 8,    /* 16 bits with a 66 prefix */
    IMMV = 16,    /* as IMM32, and 64 bits with REX.W: mov $imm,%reg */
    ADDRESS = 32, /* as wide as an address: mov between memory and rAX */
    REL8 = 64,
    REL32 = 128,
    BAD = 256,
    MOVES = 512,
};

struct state {
    const uint8_t *code; /* INSN_LONGEST bytes and some more can be read */
    unsigned at;         /* the next byte */
    bool short_operand, short_address, lock, rex_w, rex_b;
    uint8_t opcode, modrm;
    unsigned what;
    unsigned map; /* 1: one byte, 2: 0f, 3: 0f 38, 4: 0f 3a */
    bool vex;
};

/* Of the opcodes that one_byte() does not name, by their high half. */
static const uint16_t ROWS[16] = {
    [4] = BAD, /* a REX prefix that is not the last */
    [5] = MOVES,
    [7] = REL8,
    [11] = IMMV | MOVES,
};

/* add, or, adc, sbb, and, sub, xor, cmp: eight forms each, the last two of which are gone in 64-bit mode. */
static unsigned arithmetic(uint8_t opcode)
{
    static const uint16_t forms[8] = {MODRM | MOVES, MODRM | MOVES, MODRM | MOVES, MODRM | MOVES,
                                      IMM8 | MOVES,  IMM32 | MOVES, BAD,           BAD};

    return forms[opcode & 7];
}

static unsigned one_byte(uint8_t opcode)
{
    if (opcode < 0x40)
        return arithmetic(opcode);
    switch (opcode) {
    case 0x60: case 0x61: case 0x62: case 0x82: case 0x9a: case 0xce: case 0xd4: case 0xd5: case 0xd6: case 0xea:
        return BAD;
    case 0x63: case 0x84: case 0x85: case 0x88: case 0x89: case 0x8a: case 0x8b: case 0x8d:
    case 0xd0: case 0xd1: case 0xd2: case 0xd3: /* movslq, test, mov, lea, shifts */
        return MODRM | MOVES;
    case 0x68:
        return IMM32;
    case 0x69:
        return MODRM | IMM32 | MOVES;
    case 0x6a:
        return IMM8;
    case 0x6b: case 0x80: case 0x83: case 0xc0: case 0xc1: case 0xc6:
        return MODRM | IMM8 | MOVES;
    case 0x81: case 0xc7:
        return MODRM | IMM32 | MOVES;
    case 0x86: case 0x87: case 0x8c: case 0x8e: case 0x8f: case 0xf6: case 0xf7: case 0xfe: case 0xff:
        return MODRM;
    case 0xa0: case 0xa1: case 0xa2: case 0xa3:
        return ADDRESS;
    case 0xa8: case 0xa9: /* test */
        return (opcode & 1 ? IMM32 : IMM8) | MOVES;
    case 0xb0: case 0xb1: case 0xb2: case 0xb3: case 0xb4: case 0xb5: case 0xb6: case 0xb7:
        return IMM8 | MOVES;
    case 0xc2: case 0xca:
        return IMM16;
    case 0xc8:
        return IMM16 | IMM8;
    case 0xcd: case 0xe4: case 0xe5: case 0xe6: case 0xe7:
        return IMM8;
    case 0xe0: case 0xe1: case 0xe2: case 0xe3: case 0xeb:
        return REL8;
    case 0xe8: case 0xe9:
        return REL32;
    case 0x98: case 0x99: /* cltq, cqto */
        return MOVES;
    }
    if (opcode >= 0xd8 && opcode <= 0xdf)
        return MODRM;
    return ROWS[opcode >> 4];
}

static unsigned two_bytes(uint8_t opcode)
{
    switch (opcode) {
    case 0x05: case 0x06: case 0x07: case 0x08: case 0x09: case 0x0b: case 0x0e: case 0x77:
    case 0xa0: case 0xa1: case 0xa2: case 0xa8: case 0xa9: case 0xaa:
        return 0;
    case 0x04: case 0x0a: case 0x0c: case 0x20: case 0x21: case 0x22: case 0x23:
    case 0x24: case 0x25: case 0x26: case 0x27: case 0x36: case 0x37:
        return BAD;
    case 0x0f: case 0x70: case 0x71: case 0x72: case 0x73: case 0xa4: case 0xac: case 0xba: case 0xc2:
    case 0xc4: case 0xc5: case 0xc6: /* 0f 0f, of 3DNow!, has its opcode at its end */
        return MODRM | IMM8;
    case 0x10: case 0x11: case 0x12: case 0x13: case 0x14: case 0x16: case 0x17: case 0x28: case 0x29:
    case 0x54: case 0x57: case 0x60: case 0x61: case 0x62: case 0x6c: case 0x6d: case 0x6e: case 0x6f:
    case 0x7e: case 0x7f: case 0xaf: case 0xb6: case 0xb7: case 0xbe: case 0xbf: case 0xd6: case 0xef:
        return MODRM | MOVES; /* moves of SSE registers, imul, movzx, movsx */
    }
    switch (opcode >> 4) {
    case 0x3:
        return 0;
    case 0x4: case 0x9: /* cmov, set */
        return MODRM | MOVES;
    case 0x8:
        return REL32;
    case 0xc:
        return opcode >= 0xc8 ? 0 : MODRM; /* bswap */
    }
    return MODRM;
}

static bool is_prefix(struct state *state, uint8_t byte)
{
    switch (byte) {
    case 0x66:
        return state->short_operand = true;
    case 0x67:
        return state->short_address = true;
    case 0xf0:
        return state->lock = true;
    case 0x26: case 0x2e: case 0x36: case 0x3e: case 0x64: case 0x65: case 0xf2: case 0xf3:
        return true;
    }
    return false;
}

/* VEX and EVEX name the map themselves; every instruction of theirs has a ModRM byte, but vzeroupper and vzeroall. */
static void read_vex(struct state *state, unsigned map, unsigned more)
{
    state->at += more;
    state->opcode = state->code[state->at++];
    state->vex = true;
    state->map = map + 1;
    if (map == 1)
        state->what = state->opcode == 0x77 ? 0 : MODRM | (two_bytes(state->opcode) & IMM8);
    else if (map == 3)
        state->what = MODRM | IMM8;
    else
        state->what = map == 0 || map > 6 ? BAD : MODRM;
}

static void read_opcode(struct state *state)
{
    uint8_t byte;

    while (state->at < INSN_LONGEST && is_prefix(state, state->code[state->at]))
        state->at++;
    byte = state->code[state->at++];
    if ((byte & 0xf0) == 0x40) {
        state->rex_w = byte & 8;
        state->rex_b = byte & 1;
        byte = state->code[state->at++];
    }
    state->opcode = byte;
    state->map = 1;
    if (byte == 0xc5)
        return read_vex(state, 1, 1);
    if (byte == 0xc4)
        return read_vex(state, state->code[state->at] & 0x1f, 2);
    if (byte == 0x62)
        return read_vex(state, state->code[state->at] & 0x7, 3);
    if (byte != 0x0f) {
        state->what = one_byte(byte);
        return;
    }
    byte = state->opcode = state->code[state->at++];
    state->map = 2;
    if (byte == 0x38 || byte == 0x3a) {
        state->map = byte == 0x38 ? 3 : 4;
        state->opcode = state->code[state->at++];
        state->what = byte == 0x38 ? MODRM : MODRM | IMM8;
        return;
    }
    state->what = two_bytes(byte);
}

static void read_modrm(struct state *state, struct insn *insn)
{
    unsigned mod, rm;
    uint8_t sib = 0;

    if (!(state->what & MODRM))
        return;
    state->modrm = state->code[state->at++];
    mod = state->modrm >> 6;
    rm = state->modrm & 7;
    if (mod == 3)
        return;
    if (rm == 4)
        sib = state->code[state->at++];
    if (mod == 1) {
        state->at++;
    } else if (mod == 2 || (rm == 4 && (sib & 7) == 5)) {
        state->at += 4;
    } else if (rm == 5) {
        insn->relative_at = (uint8_t)state->at;
        state->at += 4;
    }
}

static void read_immediate(struct state *state)
{
    unsigned wide = state->short_operand ? 2 : 4;
    unsigned group = state->modrm >> 3 & 7;

    if (state->map == 1 && !state->vex && (state->opcode == 0xf6 || state->opcode == 0xf7) && group < 2) /* test */
        state->what |= (state->opcode & 1 ? IMM32 : IMM8) | MOVES;
    if (state->what & (IMM8 | REL8))
        state->at += 1;
    if (state->what & IMM16)
        state->at += 2;
    if (state->what & IMM32)
        state->at += state->rex_w ? 4 : wide;
    if (state->what & IMMV)
        state->at += state->rex_w ? 8 : wide;
    if (state->what & ADDRESS)
        state->at += state->short_address ? 4 : 8;
    if (state->what & REL32)
        state->at += 4;
}

static int32_t last_int32(const struct state *state)
{
    int32_t value;

    memcpy(&value, state->code + state->at - 4, 4);
    return value;
}

static void name_branch(const struct state *state, struct insn *insn)
{
    bool conditional = state->map == 2 || (state->opcode & 0xf0) == 0x70;

    insn->offset = state->what & REL8 ? (int8_t)state->code[state->at - 1] : last_int32(state);
    insn->condition = state->opcode & 15;
    insn->kind = conditional && !state->short_operand ? INSN_JCC : INSN_JUMP;
}

static bool is_indirect(const struct state *state)
{
    unsigned group = state->modrm >> 3 & 7;

    return state->map == 1 && !state->vex && state->opcode == 0xff && (group == 4 || group == 5);
}

static bool is_nop(const struct state *state)
{
    if (state->map == 2)
        return state->opcode == 0x1f && !(state->modrm >> 3 & 7);
    return state->map == 1 && state->opcode == 0x90 && !state->rex_b;
}

/* An instruction that is valid, but has a prefix by which it is better left where it is. */
static bool is_odd(const struct state *state)
{
    return state->lock || state->short_address || state->vex;
}

static void name(const struct state *state, struct insn *insn)
{
    bool to_memory = (state->opcode == 0xc6 || state->opcode == 0xc7) && state->map == 1;

    insn->kind = INSN_STAYS;
    if (state->vex)
        return;
    if (state->what & (REL8 | REL32))
        name_branch(state, insn);
    else if (is_indirect(state))
        insn->kind = INSN_INDIRECT;
    else if (state->map == 2 && state->opcode == 0x05)
        insn->kind = INSN_SYSCALL;
    else if (is_nop(state))
        insn->kind = INSN_NOP;
    else if (to_memory && (state->modrm >> 3 & 7)) /* xbegin, xabort */
        insn->kind = INSN_STAYS;
    else if (state->what & MOVES && !is_odd(state))
        insn->kind = INSN_MOVES;
}

struct insn kc_insn_read(const uint8_t *code, uint64_t size)
{
    uint8_t copy[2 * INSN_LONGEST];
    struct state state = {.code = code};
    struct insn insn = {0};

    if (size < sizeof(copy)) {
        memset(copy, 0, sizeof(copy));
        for (uint64_t i = 0; i < size; i++)
            copy[i] = code[i];
        state.code = copy;
    }
    read_opcode(&state);
    read_modrm(&state, &insn);
    read_immediate(&state);
    if (state.what & BAD || state.at > size || state.at > INSN_LONGEST)
        return (struct insn){.kind = INSN_UNKNOWN};
    insn.length = (uint8_t)state.at;
    name(&state, &insn);
    if (insn.relative_at)
        memcpy(&insn.offset, state.code + insn.relative_at, 4);
    return insn;
}
