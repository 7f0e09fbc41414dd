/* SPDX-License-Identifier: GPL-2.0-or-later */
/* x86-64: marks, special instructions, string operations and what can fault, derived from the bytes. */
#include <string.h>

#include "arch.h"
#include "x86_decoded.h"
#include "x86_special.h"

/* Those whose privilege QEMU checks when it translates them (and int, whose gate it checks later). */
static const uint8_t checked_first[] = {
    SP_HLT, SP_CLI_STI, SP_RDMSR, SP_WRMSR, SP_LLDT, SP_LTR, SP_LGDT, SP_LIDT, SP_INVLPG, SP_SWAPGS, SP_XSETBV, SP_WBINVD,
    SP_MOV_CR, SP_WRITE_CR3, SP_MOV_DR, SP_INT,
#if PLUGIN_API >= 3 /* since QEMU 9.1 */
    SP_SYSRET,
#endif
};

/* Memory operands that the instruction reads and writes. */
static void accesses(struct insn_facts *f, uint8_t loads, uint8_t stores)
{
    f->loads = loads;
    f->stores = stores;
    f->can_fault = true;
}

static void special(struct insn_facts *f, enum special kind)
{
    f->special = kind;
    f->can_fault = true;
}

static void string_operation(struct decoded *d, int opcode, struct insn_facts *f)
{
    f->element_bytes = !(opcode & 1) ? 1 : d->wide ? 8 : d->operand16 ? 2 : 4;
    /* cmps and scas end by a condition too, so their iterations do not follow from their instructions. */
    f->repeats = (d->rep || d->repne) && (opcode & 0xf6) != 0xa6;
    switch (opcode & 0xfe) {
    case 0xa4: accesses(f, 1, 1); break;                        /* movs */
    case 0xaa: accesses(f, 0, 1); break;                        /* stos */
    case 0xa6: accesses(f, 2, 0); break;                        /* cmps */
    case 0xac: case 0xae: accesses(f, 1, 0); break;             /* lods, scas */
    case 0x6c: accesses(f, 0, 1); special(f, SP_IN); break;     /* ins */
    case 0x6e: accesses(f, 1, 0); special(f, SP_OUT); break;    /* outs */
    }
    f->is_string = true;
}

static void group_0f01(const struct decoded *d, struct insn_facts *f)
{
    static const uint8_t by_memory[8] = {
        [2] = SP_LGDT, [3] = SP_LIDT, [6] = SP_MOV_CR, [7] = SP_INVLPG,
    };

    f->can_fault = true;
    if (d->memory) {
        f->special = by_memory[reg_field(d)];
        if (f->special != SP_INVLPG)
            accesses(f, reg_field(d) >= 2 && reg_field(d) != 4, reg_field(d) < 2 || reg_field(d) == 4);
        return;
    }
    switch (d->modrm) {
    case 0xc8: f->special = SP_MONITOR; break;
    case 0xc9: f->special = SP_MWAIT; break;
    case 0xca: case 0xcb: f->special = SP_STAC_CLAC; break;
    case 0xd1: f->special = SP_XSETBV; break;
    case 0xf8: f->special = SP_SWAPGS; break;
    case 0xf9: f->special = SP_RDTSC; break;
    }
}

static void group_0fae(const struct decoded *d, struct insn_facts *f)
{
    static const uint8_t by_memory[8] = {
        SP_XSAVE, SP_XRSTOR, 0, 0, SP_XSAVE, SP_XRSTOR, SP_XSAVE, SP_CLFLUSH,
    };
    static const uint8_t by_fence[8] = { [5] = SP_LFENCE, [6] = SP_MFENCE, [7] = SP_SFENCE };
    static const uint8_t by_base[8] = { [2] = SP_WRFSBASE, [3] = SP_WRGSBASE };
    unsigned reg = reg_field(d);

    f->can_fault = true;
    if (d->memory && reg != 7 && !(reg == 6 && d->operand16))
        accesses(f, reg == 1 || reg == 2 || reg == 5, reg == 0 || reg == 3 || reg == 4 || reg == 6);
    if (d->memory)
        f->special = d->operand16 && reg == 6 ? SP_CLFLUSH : by_memory[reg];
    else if (!d->operand16 && !d->repne) /* those are tpause and umwait */
        f->special = d->rep ? by_base[reg] : by_fence[reg];
}

static bool memory_is_rewritten_0f(int opcode)
{
    static const uint8_t opcodes[] = { 0xa4, 0xa5, 0xab, 0xac, 0xad, 0xb0, 0xb1, 0xb3, 0xba, 0xbb, 0xc0, 0xc1 };

    return memchr(opcodes, opcode, sizeof opcodes);
}

static bool is_vector_store(int opcode, bool rep)
{
    static const uint8_t stores[] = { 0x11, 0x13, 0x17, 0x29, 0x2b, 0x7f, 0xc3, 0xd6, 0xe7 };

    return memchr(stores, opcode, sizeof stores) || (opcode == 0x7e && !rep);
}

static void access_0f(const struct decoded *d, int opcode, struct insn_facts *f)
{
    if (memory_is_rewritten_0f(opcode) && !(opcode == 0xba && reg_field(d) == 4))
        accesses(f, 1, 1);
    else if (is_vector_store(opcode, d->rep) || (opcode >= 0x90 && opcode <= 0x9f))
        accesses(f, 0, 1); /* setcc too */
    else
        accesses(f, 1, 0);
}

static void special_by(struct insn_facts *f, enum special kind, uint8_t reads)
{
    special(f, kind);
    f->reads = reads;
}

static void move_control(struct decoded *d, bool is_write, struct insn_facts *f)
{
    take_modrm(d);
    if (is_write && reg_field(d) == 3 && !d->reg_extended) {
        special_by(f, SP_WRITE_CR3, (uint8_t)(READS_CR3 + (d->modrm & 7) + 8 * d->base_extended));
        return;
    }
    special(f, SP_MOV_CR);
    f->detail = CR_DETAIL(is_write, reg_field(d) + 8u * d->reg_extended);
}

/* Ports by number, or that dx has. */
static void port(struct decoded *d, int opcode, struct insn_facts *f)
{
    bool in_dx = opcode & 8;

    special_by(f, opcode & 2 ? SP_OUT : SP_IN, in_dx ? READS_PORT : READS_NOTHING);
    if (!in_dx)
        f->detail = PORT_DETAIL((uint32_t)take(d) & 0xff);
}

/* Two-byte opcodes without ModRM, or whose meaning depends on more than the opcode. */
static bool classify_0f_special(struct decoded *d, int opcode, struct insn_facts *f)
{
    switch (opcode) {
    case 0x05: special(f, SP_SYSCALL); return true;
    case 0x07: special(f, SP_SYSRET); f->leaves_kernel = true; return true;
    case 0x34: special(f, SP_SYSENTER); return true;
    case 0x35: special(f, SP_SYSEXIT); f->leaves_kernel = true; return true;
    case 0x08: case 0x09: special(f, SP_WBINVD); return true;
    case 0x06: special(f, SP_MOV_CR); f->detail = CLTS_DETAIL; return true;
    case 0x30: special_by(f, SP_WRMSR, READS_MSR); return true;
    case 0x31: special(f, SP_RDTSC); return true;
    case 0x32: special_by(f, SP_RDMSR, READS_MSR); return true;
    case 0x33: special(f, SP_RDPMC); return true;
    case 0xa2: special(f, SP_CPUID); return true;
    case 0x20: case 0x22: move_control(d, opcode == 0x22, f); return true;
    case 0x21: case 0x23: take_modrm(d); special(f, SP_MOV_DR); return true;
    case 0xa0: case 0xa8: accesses(f, 0, 1); return true; /* push fs, gs */
    case 0xa1: case 0xa9: accesses(f, 1, 0); special(f, SP_SEGMENT); return true;
    case 0xb2: case 0xb4: case 0xb5: take_modrm(d); accesses(f, 1, 0); special(f, SP_SEGMENT); return true;
    case 0x01: take_modrm(d); group_0f01(d, f); return true;
    case 0xae: take_modrm(d); group_0fae(d, f); return true;
    case 0x00:
        take_modrm(d);
        accesses(f, d->memory && reg_field(d) >= 2, d->memory && reg_field(d) < 2);
        switch (reg_field(d)) {
        case 2: special(f, SP_LLDT); break;
        case 3: special(f, SP_LTR); break;
        case 4: case 5: special(f, SP_VERW); break;
        default: f->can_fault = true;
        }
        return true;
    case 0xc7:
        take_modrm(d);
        f->can_fault = true;
        if (!d->memory && reg_field(d) >= 6)
            f->special = d->rep ? SP_NONE : SP_RDRAND;
        else if (reg_field(d) == 3)
            special(f, SP_XRSTOR), accesses(f, 1, 0);
        else if (reg_field(d) == 4 || reg_field(d) == 5)
            special(f, SP_XSAVE), accesses(f, 0, 1);
        else
            accesses(f, 1, 1); /* cmpxchg8b, cmpxchg16b */
        return true;
    case 0x38:
        if (take(d) == 0x82 && d->operand16)
            f->special = SP_INVPCID;
        take_modrm(d);
        accesses(f, d->memory, 0);
        return true;
    case 0x3a: {
        int third = take(d);
        bool extracts = third >= 0x14 && third <= 0x17;

        take_modrm(d);
        accesses(f, d->memory && !extracts, d->memory && extracts);
        return true;
    }
    case 0x0b: f->can_fault = true; return true; /* ud2 */
    }
    return false;
}

static void classify_0f(struct decoded *d, struct insn_facts *f)
{
    int opcode = take(d);

    if (classify_0f_special(d, opcode, f))
        return;
    if ((opcode >= 0x80 && opcode <= 0x8f) || (opcode >= 0xc8 && opcode <= 0xcf) || opcode == 0x77)
        return; /* jcc, bswap, emms */
    if (opcode == 0x0d || (opcode >= 0x18 && opcode <= 0x1f))
        return; /* prefetches, hints, long NOPs, endbr: no access whatever the operand says */
    take_modrm(d);
    if (d->memory)
        access_0f(d, opcode, f);
    /* General-purpose forms on registers cannot fault; vector and unknown ones might. */
    f->can_fault = d->memory ||
        !((opcode >= 0x40 && opcode <= 0x4f) || (opcode >= 0x90 && opcode <= 0x9f) ||
          (opcode >= 0xa3 && opcode <= 0xc1));
}

/* VEX and EVEX: the opcode map is in the prefix; in map 1 the opcodes are those after 0f. */
static void classify_vector(struct decoded *d, int prefix, struct insn_facts *f)
{
    int map = 1, pp = take(d);

    if (prefix == 0xc4) {
        map = pp & 0x1f;
        pp = take(d);
    } else if (prefix == 0x62) {
        map = pp & 7;
        pp = take(d);
        take(d);
    }
    int opcode = take(d);

    if (map == 1 && opcode == 0x77) { /* vzeroupper has no ModRM */
        f->can_fault = true;
        return;
    }
    take_modrm(d);
    bool store = d->memory && ((map == 1 && is_vector_store(opcode, (pp & 3) == 2)) ||
                               (map == 2 && (opcode == 0x2e || opcode == 0x2f || opcode == 0x8e)) ||
                               (map == 3 && ((opcode >= 0x14 && opcode <= 0x17) || opcode == 0x19 || opcode == 0x39)));
    accesses(f, d->memory && !store, store);
}

/* One-byte opcodes whose meaning depends on more than "has ModRM". */
static bool classify_special(struct decoded *d, int opcode, struct insn_facts *f)
{
    switch (opcode) {
    case 0x6c: case 0x6d: case 0x6e: case 0x6f:
    case 0xa4: case 0xa5: case 0xa6: case 0xa7:
    case 0xaa: case 0xab: case 0xac: case 0xad: case 0xae: case 0xaf:
        string_operation(d, opcode, f);
        return true;
    case 0x90: if (d->rep) special(f, SP_PAUSE); return true;
    case 0xcc: case 0xcd: case 0xce: case 0xf1: special(f, SP_INT); return true;
    case 0xcf:
        accesses(f, 1, 0);
        special(f, SP_IRET);
        f->frame_return = f->leaves_kernel = true;
        return true;
    case 0xca: case 0xcb: accesses(f, 1, 0); special(f, SP_FAR); return true;
    case 0x9a: case 0xea: special(f, SP_FAR); return true;
    case 0xe4: case 0xe5: case 0xe6: case 0xe7: case 0xec: case 0xed: case 0xee: case 0xef:
        port(d, opcode, f);
        return true;
    case 0xf4: special(f, SP_HLT); return true;
    case 0xfa: case 0xfb: special(f, SP_CLI_STI); return true;
    case 0x8e: take_modrm(d); accesses(f, d->memory, 0); special(f, SP_SEGMENT); return true;
    case 0x8d: return true; /* lea */
    case 0xc4: case 0xc5: case 0x62: classify_vector(d, opcode, f); return true;
    }
    return false;
}

static bool is_plain(int op)
{
    bool alu_immediate = op < 0x40 && (op & 7) >= 4;

    return alu_immediate || (op >= 0x70 && op <= 0x7f) || (op >= 0x91 && op <= 0x99) || op == 0x9e || op == 0x9f ||
           op == 0xa8 || op == 0xa9 || (op >= 0xb0 && op <= 0xbf) || (op >= 0xe0 && op <= 0xe3) || op == 0xe9 ||
           op == 0xeb || op == 0xf5 || op == 0xf8 || op == 0xf9 || op == 0xfc || op == 0xfd;
}

static bool has_modrm(int op)
{
    return (op < 0x40 && (op & 7) < 4) || op == 0x63 || op == 0x69 || op == 0x6b || (op >= 0x80 && op <= 0x8f) ||
           op == 0xc0 || op == 0xc1 || op == 0xc6 || op == 0xc7 || (op >= 0xd0 && op <= 0xd3) ||
           (op >= 0xd8 && op <= 0xdf) || op == 0xf6 || op == 0xf7 || op == 0xfe || op == 0xff;
}

static bool memory_is_rewritten(const struct decoded *d, int op)
{
    unsigned reg = reg_field(d);

    if (op < 0x40)
        return (op & 7) < 2 && (op & 0x38) != 0x38; /* not cmp */
    if (op >= 0x80 && op <= 0x83)
        return reg != 7;
    if (op == 0xf6 || op == 0xf7)
        return reg == 2 || reg == 3;
    if (op == 0xff)
        return reg != 4 && reg != 5; /* jmp reads only; inc, dec, call and push do both */
    return op == 0x86 || op == 0x87 || op == 0x8f || op == 0xc0 || op == 0xc1 ||
           (op >= 0xd0 && op <= 0xd3) || op == 0xfe;
}

static bool memory_is_only_written(const struct decoded *d, int op)
{
    static const uint8_t x87_stores[8] = { 0x00, 0xcc, 0x00, 0x8e, 0x00, 0xce, 0x00, 0xce };
    unsigned reg = reg_field(d);

    if (op >= 0xd8 && op <= 0xdf)
        return x87_stores[op & 7] >> reg & 1;
    return op == 0x88 || op == 0x89 || op == 0x8c || op == 0xc6 || op == 0xc7;
}

static void access_modrm(const struct decoded *d, int op, struct insn_facts *f)
{
    if (memory_is_only_written(d, op))
        accesses(f, 0, 1);
    else
        accesses(f, 1, memory_is_rewritten(d, op));
}

static void classify_modrm(struct decoded *d, int op, struct insn_facts *f)
{
    take_modrm(d);
    bool divides = (op == 0xf6 || op == 0xf7) && reg_field(d) >= 6;
    bool x87 = op >= 0xd8 && op <= 0xdf;
    bool pushes = op == 0xff && !d->memory && (reg_field(d) == 2 || reg_field(d) == 6);

    if (d->memory)
        access_modrm(d, op, f);
    else if (pushes)
        accesses(f, 0, 1);
    else if (op == 0x8f)
        accesses(f, 1, 0);
    f->can_fault |= divides || x87;
    if (op == 0xff && d->memory && (reg_field(d) == 3 || reg_field(d) == 5))
        special(f, SP_FAR);
    if ((op == 0x86 || op == 0x87) && d->memory)
        special(f, SP_LOCK); /* xchg with memory locks without the prefix */
}

static bool is_tagged(const uint8_t *bytes, size_t size, struct insn_facts *f)
{
    static const uint8_t nop[3] = { 0x0f, 0x1f, 0x80 };
    static const uint8_t load[7] = { 0x0f, 0xb6, 0x88, 0x00, 0x10, 0x64, 0x4b };

    if (size != 7)
        return false;
    if (!memcmp(bytes, nop, 3) && bytes[4] == 0 && bytes[5] == 0x64 && bytes[6] == 0x4b &&
        bytes[3] > MARK_NONE && bytes[3] < MARK_KINDS) {
        f->mark = bytes[3];
        return true;
    }
    if (!memcmp(bytes, load, 7)) {
        f->argument = true;
        accesses(f, 1, 0);
        return true;
    }
    return false;
}

/* mov %rsp,disp(%rdi) and mov disp(%rsi),%rsp, displacement of one or four bytes. */
static void find_stack_switch(const uint8_t *bytes, size_t size, struct insn_facts *f)
{
    if ((size != 4 && size != 7) || bytes[0] != 0x48)
        return;
    f->switch_store = bytes[1] == 0x89 && (bytes[2] == 0xa7 || bytes[2] == 0x67);
    f->switch_load = bytes[1] == 0x8b && (bytes[2] == 0xa6 || bytes[2] == 0x66);
}

/* Opcodes that access memory without a ModRM byte; and what is unknown. */
static void classify_implicit(int op, struct insn_facts *f)
{
    bool pushes = (op >= 0x50 && op <= 0x57) || op == 0x68 || op == 0x6a || op == 0x9c || op == 0xe8 || op == 0xc8;
    bool pops = (op >= 0x58 && op <= 0x5f) || op == 0x9d || op == 0xc2 || op == 0xc3 || op == 0xc9;
    bool stores = op == 0xa2 || op == 0xa3, loads = op == 0xa0 || op == 0xa1 || op == 0xd7;

    accesses(f, pops || loads, pushes || stores);
}

/* The stack, the kernel's image by %rip and per-CPU data by %gs; in user code each of them can be missing. */
static bool is_always_there(const struct decoded *d, int op)
{
    unsigned rm = d->modrm & 7;

    if (!d->has_modrm)
        return (op >= 0x50 && op <= 0x5f) || op == 0x68 || op == 0x6a || op == 0xe8 || op == 0xc3 ||
               op == 0xc9 || op == 0x9c;
    if (!d->memory)
        return false;
    bool on_stack = rm == 4 && !d->base_extended && d->next < d->end && (*d->next & 7) == 4;
    bool in_image = d->modrm < 0x40 && rm == 5;

    return d->gs || on_stack || in_image;
}

/* Conditional or not; a repeated string operation goes back to itself. */
static bool jumps(struct decoded d)
{
    int op = take_prefixes(&d);
    bool string = (op >= 0xa4 && op <= 0xa7) || (op >= 0xaa && op <= 0xaf) || (op >= 0x6c && op <= 0x6f);

    if (op == 0x0f) {
        op = take(&d);
        return (op >= 0x80 && op <= 0x8f) || op == 0x05 || op == 0x07 || op == 0x0b || op == 0x34 || op == 0x35;
    }
    if (op == 0xff)
        return d.next < d.end && (*d.next >> 3 & 7) >= 2 && (*d.next >> 3 & 7) <= 5;
    return (string && (d.rep || d.repne)) || (op >= 0x70 && op <= 0x7f) || (op >= 0xe0 && op <= 0xe3) ||
           (op >= 0xe8 && op <= 0xeb) || op == 0xc2 || op == 0xc3 || (op >= 0xca && op <= 0xcf) || op == 0xf1 || op == 0xf4;
}

static void classify(const uint8_t *bytes, size_t size, struct stretch *stretch, struct insn_facts *f)
{
    struct decoded d = { .next = bytes, .end = bytes + size };

    (void)stretch;
    memset(f, 0, sizeof *f);
    if (is_tagged(bytes, size, f))
        return;
    find_stack_switch(bytes, size, f);
    f->jumps = jumps(d);
    int op = take_prefixes(&d);

    f->returns = op == 0xc3 || op == 0xc2;
    f->calls_function = op == 0xe8 || (op == 0xff && d.next < d.end && (*d.next >> 3 & 7) == 2);

    if (op == 0x0f)
        classify_0f(&d, f);
    else if (classify_special(&d, op, f) || is_plain(op))
        ;
    else if (has_modrm(op))
        classify_modrm(&d, op, f);
    else
        classify_implicit(op, f);
    if (d.lock)
        special(f, SP_LOCK);
    f->always_there = op != 0x0f && !f->special && !f->is_string && is_always_there(&d, op);
    f->trap_counts = f->special && memchr(checked_first, f->special, sizeof checked_first);
}

/* mov %REGISTER,(%rsp): what is called to go where that register points is a retpoline. */
static bool overwrites_return(const uint8_t *bytes, size_t size)
{
    return size >= 4 && (bytes[0] == 0x48 || bytes[0] == 0x4c) && bytes[1] == 0x89 && (bytes[2] & 0xc7) == 4 && bytes[3] == 0x24;
}

const struct arch arch_x86_64 = {
    .target_name = "x86_64",
    .kernel_start = UINT64_C(0xffff800000000000),
    /* Documentation/arch/x86/x86_64/mm.rst, KERNEL_IMAGE_SIZE without randomized addresses */
    .image_start = UINT64_C(0xffffffff80000000),
    .image_bytes = UINT64_C(512) << 20,
    .page_bytes = 4096,
    .max_insn_bytes = 15,
    .drops_page_crossing = true,
    .returns_by_stack = true,
    .special_names = x86_special_names,
    .classify = classify,
    .detail = x86_detail,
    .device_at = x86_device_at,
    .name_detail = x86_name_detail,
    .overwrites_return = overwrites_return,
};
