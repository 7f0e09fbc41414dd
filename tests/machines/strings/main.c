/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Repeated string operations at every place around the border of two pages of code: a region of three passes each.
 *
 * A region's name is OPERATION/COUNT/LEAD/PLACE: so many elements a pass, the number of NOPs that stand before the operation in
 * its block, and where it begins, in bytes after the border. All else of a routine is the same at each place.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kdelta_clock.h"

enum { PAGE = 4096, PASSES = 3, LEAD = 3, PAGES = 16 };

static const struct operation {
    const char *name;
    uint8_t code[3];
    size_t bytes;
} operations[] = {
    { "stosb", { 0xf3, 0xaa }, 2 },
    { "stosq", { 0xf3, 0x48, 0xab }, 3 },
    { "movsb", { 0xf3, 0xa4 }, 2 },
    { "lodsw", { 0x66, 0xf3, 0xad }, 3 },
    { "scasb", { 0xf2, 0xae }, 2 },
};
static const size_t counts[] = { 0, 1, 2, 7, 5000 };
static const long places[] = { -512, -6, -5, -4, -3, -2, -1, 0, 1, 2 };

/* What QEMU leaves to functions that access memory: cmpxchg16b (%r8); fxsave (%r9); and the operation's flags are as they were: ret */
static const uint8_t tail[] = { 0x49, 0x0f, 0xc7, 0x08, 0x41, 0x0f, 0xae, 0x01, 0xc3 };

static uint8_t *code, *to, *from; /* the border that matters is at code + PAGE */
static _Alignas(64) uint64_t pair[2], state[64];
static char lines[1 << 16];
static size_t line_bytes;

static uint8_t *map(int protection)
{
    uint8_t *at = mmap(NULL, PAGES * PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED) {
        perror("mmap");
        _exit(1);
    }
    return at;
}

/* NOPs, the operation at the place, what is left of the NOPs, and the tail. */
static const uint8_t *put(const struct operation *o, size_t lead, long place)
{
    uint8_t *at = code + PAGE + place, *entry = at - lead;

    memset(code, 0xcc, 2 * PAGE);
    memset(entry, 0x90, o->bytes + LEAD);
    memcpy(at, o->code, o->bytes);
    memcpy(entry + o->bytes + LEAD, tail, sizeof tail);
    return entry;
}

/* No element is what scas looks for. */
static void call(const uint8_t *entry, size_t count)
{
    uint8_t *destination = to + PAGE - 5;
    const uint8_t *source = from + PAGE - 5;
    register const void *r8 __asm__("r8") = pair;
    register const void *r9 __asm__("r9") = state;
    uint64_t accumulator = UINT64_MAX;

    __asm__ volatile("call *%[entry]"
                     : "+D"(destination), "+S"(source), "+c"(count), "+a"(accumulator)
                     : [entry] "b"(entry), "r"(r8), "r"(r9)
                     : "rdx", "memory", "cc");
}

/* The second pass finds the pages that the first has faulted in, the third again does not. */
static void drop_pages(size_t pass, uint8_t *data)
{
    if (pass != 1 && madvise(data, PAGES * PAGE, MADV_DONTNEED)) {
        perror("madvise");
        _exit(1);
    }
}

static void measure(const struct operation *o, size_t count, size_t lead, long place)
{
    char name[64];
    const uint8_t *entry = put(o, lead, place);

    snprintf(name, sizeof name, "%s/%zu/%zu/%ld", o->name, count, lead, place);
    kdelta_announce(name);
    uint64_t begin = kdelta_clock_begin();

    for (size_t pass = 0; pass < PASSES; pass++) {
        drop_pages(pass, to);
        drop_pages(pass, from);
        call(entry, count);
        kdelta_iter();
    }
    uint64_t end = kdelta_clock_end();

    line_bytes += (size_t)snprintf(lines + line_bytes, sizeof lines - line_bytes, "%s %llu %llu\n", name,
                                   (unsigned long long)(end - begin), (unsigned long long)kdelta_clock_overhead());
}

#define EACH(index, array) (size_t index = 0; index < sizeof(array) / sizeof *(array); index++)

int main(void)
{
    code = map(PROT_READ | PROT_WRITE | PROT_EXEC);
    to = map(PROT_READ | PROT_WRITE);
    from = map(PROT_READ | PROT_WRITE);
    for EACH(o, operations)
        for EACH(c, counts)
            for (size_t lead = 0; lead <= LEAD; lead += LEAD)
                for EACH(p, places)
                    measure(&operations[o], counts[c], lead, places[p]);
    kdelta_send("region-clock\n", strlen("region-clock\n"));
    kdelta_message(lines, line_bytes);
    return 0;
}
