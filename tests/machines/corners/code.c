/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Code at the ends of pages, on pages that are not there, and code that changes. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "corners.h"

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
static uint8_t *put(const void *bytes, size_t size, long before)
{
    memset(code + AROUND - PAGE, 0xc3, PAGE + PAGE);
    return memcpy(BORDER - before - (long)size, bytes, size);
}

static void drop_pages(void)
{
    if (madvise(code, 2 * AROUND, MADV_DONTNEED) || madvise(data, 64 * PAGE, MADV_DONTNEED))
        fail("madvise");
}

static void call(const uint8_t *at, void *argument)
{
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

#define BYTES(...) (const uint8_t[]){ __VA_ARGS__ }
#define PUT(before, ...) put(BYTES(__VA_ARGS__), sizeof BYTES(__VA_ARGS__), before)

#define LOAD 0x8b, 0x07                         /* mov (%rdi),%eax */
#define STORE 0x89, 0x07                        /* mov %eax,(%rdi) */
#define ADD 0x01, 0x07                          /* add %eax,(%rdi): reads, then writes */
#define MOV_IMMEDIATE 0xb8, 1, 0, 0, 0          /* mov $1,%eax */
#define RET 0xc3
#define NOP 0x90

static void crossing(void) { call_often(PUT(-3, NOP, NOP, MOV_IMMEDIATE, RET)); }
static void crossing_alone(void) { call_often(PUT(-3, MOV_IMMEDIATE, RET)); }
static void crossing_after_load(void) { call_often(PUT(-3, NOP, LOAD, MOV_IMMEDIATE, RET)); }
static void crossing_after_store(void) { call_often(PUT(-3, NOP, STORE, MOV_IMMEDIATE, RET)); }
static void crossing_load(void) { call_often(PUT(-2, NOP, LOAD, NOP, 0x8b, 0x47, 0x04, RET)); }
static void crossing_add(void) { call_often(PUT(-1, NOP, ADD, 0x01, 0x47, 0x04)); }
static void near_border(void) { call_often(PUT(1, NOP, LOAD, MOV_IMMEDIATE, RET)); }
static void load_at_end(void) { call_often(PUT(0, NOP, LOAD)); }
static void store_at_end(void) { call_often(PUT(0, NOP, STORE)); }
static void add_at_end(void) { call_often(PUT(0, NOP, ADD)); }
static void push_at_end(void) { call_often(PUT(-3, NOP, 0x50, 0x48, 0x83, 0xc4, 0x08, RET)); }
static void vector_at_end(void) { call_often(PUT(0, NOP, 0x66, 0x0f, 0xef, 0xc0)); }   /* pxor */
static void cpuid_at_end(void) { call_often(PUT(-1, 0x53, 0x31, 0xc0, 0x0f, 0xa2, 0x5b, RET)); }
static void rdtsc_at_end(void) { call_often(PUT(0, NOP, 0x0f, 0x31)); }
static void divide_at_end(void) /* mov $1,%eax; cltd; mov %eax,%ecx; div %ecx */
{
    call_often(PUT(0, MOV_IMMEDIATE, 0x99, 0x89, 0xc1, 0xf7, 0xf1));
}
static void x87_at_end(void) { call_often(PUT(0, NOP, 0xd9, 0xe8, 0xdd, 0xd8)); }       /* fld1; fstp %st(0) */
static void pause_at_end(void) { call_often(PUT(0, NOP, 0xf3, 0x90)); }
static void string_at_end(void) { call_often(PUT(0, MOV_IMMEDIATE, 0xaa)); }            /* stosb */
static void repeated_at_end(void) { call_often(PUT(0, 0xb9, 0, 0x20, 0, 0, 0xf3, 0xaa)); } /* rep stosb over 2 pages */

/* Two accesses of one instruction: the first is made before the second faults. */
static void call_over_pages(const uint8_t *at)
{
    for (int i = 0; i < 12; i++) {
        if (i % 3 == 0)
            madvise(data, 64 * PAGE, MADV_DONTNEED);
        data[1] = 1;
        call(at, data + PAGE - 8);
    }
}

static void vector_over_pages(void) { call_over_pages(PUT(0, NOP, 0x0f, 0x10, 0x07)); } /* movups (%rdi),%xmm0 */
static void vector_near_border(void) { call_over_pages(PUT(0, NOP, 0x0f, 0x10, 0x07, RET)); }
static void vector_before_drop(void) { call_over_pages(PUT(-3, NOP, 0x0f, 0x10, 0x07, MOV_IMMEDIATE, RET)); }

/* The first time the load faults before the block's dropped last instruction is known to be dropped. */
static void fault_before_drop(void)
{
    const uint8_t *at = PUT(-3, NOP, LOAD, NOP, MOV_IMMEDIATE, RET);

    for (int i = 0; i < 8; i++)
        call(at, data + i / 2 * PAGE);
}

/* A store into its own block: executed again, alone. */
static void own_code(void)
{
    uint8_t *at = PUT(64, NOP, 0xc6, 0x05, 0, 0, 0, 0, NOP, 0xcc, RET); /* movb $0x90,(%rip): writes over int3 */

    for (int i = 0; i < 6; i++) {
        at[8] = 0xcc;
        call(at, data);
    }
}

/* As above, and then the other order of the two. */
static void own_code_before(void)
{
    uint8_t *at = PUT(64, 0xc6, 0x05, 0xf9, 0xff, 0xff, 0xff, 0xc6, NOP, RET); /* writes what is there already */

    for (int i = 0; i < 6; i++)
        call(at, data);
}

static void many_pieces(void)
{
    for (uint8_t length = 1; length < 200; length++) {
        uint8_t *at = put(BYTES(RET), 1, 256);

        memset(at - length, 0x90, length);
        call(at - length, data);
    }
}

static void string_over_pages(void)
{
    madvise(data, 64 * PAGE, MADV_DONTNEED);
    uint8_t *from = data + 100, *to = data + 32 * PAGE + 7;
    size_t n = 20 * PAGE;

    __asm__ volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(n) : : "memory");
    n = 3 * PAGE / 4;
    from = data + 25 * PAGE + 1;
    to = data + 57 * PAGE + 5;
    __asm__ volatile("repe cmpsl" : "+S"(from), "+D"(to), "+c"(n) : : "memory", "cc");
}

const struct corner code_corners[] = {
    { "crossing", map_code, crossing, false },
    { "crossing-alone", map_code, crossing_alone, false },
    { "crossing-after-load", map_code, crossing_after_load, false },
    { "crossing-after-store", map_code, crossing_after_store, false },
    { "crossing-load", map_code, crossing_load, false },
    { "crossing-add", map_code, crossing_add, false },
    { "near-border", map_code, near_border, false },
    { "load-at-end", map_code, load_at_end, false },
    { "store-at-end", map_code, store_at_end, false },
    { "add-at-end", map_code, add_at_end, false },
    { "push-at-end", map_code, push_at_end, false },
    { "vector-at-end", map_code, vector_at_end, false },
    { "cpuid-at-end", map_code, cpuid_at_end, false },
    { "rdtsc-at-end", map_code, rdtsc_at_end, false },
    { "divide-at-end", map_code, divide_at_end, false },
    { "x87-at-end", map_code, x87_at_end, false },
    { "pause-at-end", map_code, pause_at_end, false },
    { "string-at-end", map_code, string_at_end, false },
    { "repeated-at-end", map_code, repeated_at_end, false },
    { "vector-over-pages", map_code, vector_over_pages, false },
    { "vector-near-border", map_code, vector_near_border, false },
    { "vector-before-drop", map_code, vector_before_drop, false },
    { "fault-before-drop", map_code, fault_before_drop, false },
    { "own-code", map_code, own_code, false },
    { "own-code-before", map_code, own_code_before, false },
    { "many-pieces", map_code, many_pieces, false },
    { "string-over-pages", map_code, string_over_pages, false },
    { 0 },
};
