/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Code at the ends of pages, and on pages that are not there; and loops of which is known what they do. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "corners.h"
#include "insns.h"

static uint8_t *code; /* the page border that matters is code + AROUND */
static uint8_t *data;
static int file;

#define BORDER (code + AROUND)

/* A file's pages: dropped from the page tables they stay in the page cache. */
static void map_code(void)
{
    file = memfd_create("code", 0);
    if (file < 0 || ftruncate(file, 4 * AROUND))
        fail("memfd_create");
    uint8_t *whole = mmap(NULL, 4 * AROUND, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    code = (uint8_t *)(((uintptr_t)whole + AROUND - 1) & ~(uintptr_t)(AROUND - 1));
    if (mmap(code, 2 * AROUND, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED)
        fail("mmap code");
    data = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* The code ends so many bytes before the border (or after it, where negative). */
static uint8_t *put(const uint16_t *halves, size_t bytes, long before)
{
    static const uint16_t ret[] = { RET };

    for (uint8_t *at = BORDER - PAGE; at < BORDER + PAGE; at += sizeof ret)
        memcpy(at, ret, sizeof ret);
    memcpy(BORDER - before - (long)bytes, halves, bytes);
    memcpy(BORDER - before, ret, sizeof ret);
    __builtin___clear_cache((char *)BORDER - PAGE, (char *)BORDER + PAGE);
    return BORDER - before - (long)bytes;
}

static void drop_pages(void)
{
    if (madvise(code, 2 * AROUND, MADV_DONTNEED) || madvise(data, 64 * PAGE, MADV_DONTNEED))
        fail("madvise");
}

static void call(const uint8_t *at, void *argument)
{
#ifdef __arm__
    at++; /* Thumb code */
#endif
    ((void (*)(void *))(uintptr_t)at)(argument);
}

/* Both with the pages there and without, so that each path is the first to be translated once. */
static void call_often(const uint8_t *at)
{
    for (int i = 0; i < 12; i++) {
        if (i % 3 == 1)
            drop_pages();
        if (i % 5 == 2)
            madvise(data, 64 * PAGE, MADV_DONTNEED);
        call(at, data);
    }
}

#define HALVES(...) (const uint16_t[]){ __VA_ARGS__ }
#define PUT(before, ...) put(HALVES(__VA_ARGS__), sizeof HALVES(__VA_ARGS__), before)

#ifdef __aarch64__
#define HALF 0 /* nothing lies in two pages */
#else
#define HALF 2
#endif

static void crossing(void) { call_often(PUT(-HALF, NOP, NOP, WIDE_NOP)); }
static void crossing_alone(void) { call_often(PUT(-HALF, WIDE_NOP)); }
static void crossing_after_wide(void) { call_often(PUT(-HALF, WIDE_NOP, WIDE_NOP, WIDE_NOP)); }
static void crossing_after_load(void) { call_often(PUT(-HALF, NOP, LOAD, WIDE_NOP)); }
static void crossing_after_store(void) { call_often(PUT(-HALF, NOP, STORE, WIDE_NOP)); }
static void crossing_load(void) { call_often(PUT(-HALF, NOP, LOAD, NOP, WIDE_LOAD)); }
static void crossing_store(void) { call_often(PUT(-HALF, WIDE_NOP, WIDE_STORE)); }
static void crossing_condition(void) { call_often(PUT(-4, NOP, ON_CONDITION, WIDE_LOAD)); }
static void near_border(void) { call_often(PUT(4, NOP, LOAD, WIDE_NOP)); }
static void load_at_end(void) { call_often(PUT(0, NOP, LOAD)); }
static void wide_load_at_end(void) { call_often(PUT(0, NOP, WIDE_LOAD)); }
static void store_at_end(void) { call_often(PUT(0, NOP, STORE)); }
static void many_at_end(void) { call_often(PUT(0, NOP, LOAD_MANY, STORE_MANY)); }
static void exclusive_at_end(void) { call_often(PUT(0, NOP, EXCLUSIVE)); }
static void vector_at_end(void) { call_often(PUT(0, NOP, LOAD_VECTOR)); }
static void condition_at_end(void) { call_often(PUT(0, NOP, ON_CONDITION)); }
static void call_at_end(void)
{
#ifdef __arm__ /* the number's register is the caller's */
    call_often(PUT(0, 0xb480, SYSTEM_CALL, 0xbc80));
    call_often(PUT(-4, 0xb480, SYSTEM_CALL, 0xbc80, NOP));
#else
    call_often(PUT(0, NOP, SYSTEM_CALL));
#endif
}

/* Several accesses of one instruction: the first is made before the second faults. */
static void call_over_pages(const uint8_t *at, size_t below)
{
    for (int i = 0; i < 12; i++) {
        if (i % 3 == 0)
            madvise(data, 64 * PAGE, MADV_DONTNEED);
        data[1] = 1;
        call(at, data + PAGE - below);
    }
}

static void many_over_pages(void)
{
    call_over_pages(PUT(0, NOP, LOAD_MANY), 8);
    call_over_pages(PUT(0, NOP, STORE_MANY), 8);
    call_over_pages(PUT(16, NOP, STORE_MANY, NOP), 8);
}

static void many_pieces(void)
{
    static const uint16_t nop[] = { NOP };

    for (size_t length = 1; length < 100; length++) {
        uint8_t *at = PUT(256, NOP);

        for (size_t i = 0; i < length; i++)
            memcpy(at -= sizeof nop, nop, sizeof nop);
        __builtin___clear_cache((char *)at, (char *)BORDER);
        call(at, data);
    }
}

void counted_loop(void *data);
void counted_thumb_loop(void *data);
void counted_calls(void);

/* What they execute and access, the test knows. */
#if defined(__arm__)
#define LOOP(it)                                                                                                       \
    "push {r4-r11, lr}\n\tmovw r3, #1000\n"                                                                            \
    "1: ldmia r0, {r4-r11}\n\tstmia r0, {r4-r7}\n\ttst r3, #1\n\t" it                                               \
    "ldrne r12, [r0]\n\tldmne r0, {r4-r6}\n\tstrdeq r4, r5, [r0]\n\tldrd r4, r5, [r0]\n\t"                             \
    "subs r3, r3, #1\n\tbne 1b\n\tpop {r4-r11, pc}\n"
__asm__(".text\n.syntax unified\n.arm\n.global counted_loop\n.type counted_loop, %function\ncounted_loop:\n"
        LOOP("") ".size counted_loop, . - counted_loop\n"
        ".global counted_calls\n.type counted_calls, %function\ncounted_calls:\n"
        "mov r3, #100\n\tmov r12, r7\n\tmov r7, #20\n1: svc #0\n\tsubs r3, r3, #1\n\tbne 1b\n\tmov r7, r12\n\tbx lr\n"
        ".size counted_calls, . - counted_calls\n"
        ".thumb\n.global counted_thumb_loop\n.type counted_thumb_loop, %function\ncounted_thumb_loop:\n"
        LOOP("itte ne\n\t") ".size counted_thumb_loop, . - counted_thumb_loop\n"
#ifndef __thumb__
        ".arm\n"
#endif
        );
#elif defined(__aarch64__)
__asm__(".text\n.global counted_loop\n.type counted_loop, %function\ncounted_loop:\n"
        "mov x3, #1000\n1: ldp x4, x5, [x0]\n\tstp x4, x5, [x0]\n\tldr x6, [x0]\n\tsubs x3, x3, #1\n\tb.ne 1b\n\tret\n"
        ".size counted_loop, . - counted_loop\n"
        ".global counted_calls\n.type counted_calls, %function\ncounted_calls:\n"
        "mov x3, #100\n\tmov x8, #172\n1: svc #0\n\tsubs x3, x3, #1\n\tb.ne 1b\n\tret\n"
        ".size counted_calls, . - counted_calls\n");
#elif defined(__riscv)
__asm__(".text\n.global counted_loop\n.type counted_loop, @function\ncounted_loop:\n"
        "li a3, 1000\n1: ld a4, 0(a0)\n\tsd a4, 0(a0)\n\taddi a3, a3, -1\n\tbnez a3, 1b\n\tret\n"
        ".size counted_loop, . - counted_loop\n"
        ".global counted_calls\n.type counted_calls, @function\ncounted_calls:\n"
        "li a3, 100\n\tli a7, 172\n1: ecall\n\taddi a3, a3, -1\n\tbnez a3, 1b\n\tret\n"
        ".size counted_calls, . - counted_calls\n");
#endif

static void loops(void)
{
    static uint64_t words[16];

    counted_loop(words);
    counted_calls();
#ifdef __arm__
    counted_thumb_loop(words);
#endif
}

/* Long enough for some ticks of the timer. */
static void ticks(void)
{
    for (volatile unsigned i = 0; i < 3000000; i++)
        ;
}

const struct corner code_corners[] = {
    { "crossing", map_code, crossing, false },
    { "crossing-alone", map_code, crossing_alone, false },
    { "crossing-after-wide", map_code, crossing_after_wide, false },
    { "crossing-after-load", map_code, crossing_after_load, false },
    { "crossing-after-store", map_code, crossing_after_store, false },
    { "crossing-load", map_code, crossing_load, false },
    { "crossing-store", map_code, crossing_store, false },
    { "crossing-condition", map_code, crossing_condition, false },
    { "near-border", map_code, near_border, false },
    { "load-at-end", map_code, load_at_end, false },
    { "wide-load-at-end", map_code, wide_load_at_end, false },
    { "store-at-end", map_code, store_at_end, false },
    { "many-at-end", map_code, many_at_end, false },
    { "exclusive-at-end", map_code, exclusive_at_end, false },
    { "vector-at-end", map_code, vector_at_end, false },
    { "condition-at-end", map_code, condition_at_end, false },
    { "call-at-end", map_code, call_at_end, false },
    { "many-over-pages", map_code, many_over_pages, false },
    { "many-pieces", map_code, many_pieces, false },
    { "loops", NULL, loops, false },
    { "ticks", NULL, ticks, false },
    { 0 },
};
