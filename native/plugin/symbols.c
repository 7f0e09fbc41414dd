/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rules of an architecture against the guest's symbols.
 *
 * A rules file has one rule a line, "KIND NAME"; a NAME that ends in * is a prefix. Compiler suffixes (".isra.0") do not count.
 * NAME+0xOFFSET is a place in a function or table, and 0xADDRESS one that has no symbol.
 */
#include "symbols.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "block.h"
#include "memory.h"

enum kind { INTERRUPT, INTERRUPT_RANGE, EXCEPTION, FAULT, PAGE_FAULT, ARITHMETIC, INSN_FAULT, TRAP, EITHER, SWITCH, RETURN_START,
            RETURN_END, FORKED, STARTS, RESUMES, EXITS, IDLES, SIGNALLED, IS_INTERRUPT, EXECS, HANDLES, SIGRETURN,
            SYSTEM_CALL, STUB_RANGE, KINDS };

static const char *const kind_names[KINDS] = {
    "interrupt", "interrupt-range", "exception", "fault", "page-fault", "arithmetic-fault", "instruction-fault", "trap",
    "any-trap", "switch", "return-text-start", "return-text-end", "forked", "starts", "resumes", "exits", "idles",
    "signalled", "is-interrupt", "execs", "handles", "sigreturn", "system-call", "stub-range",
};

/* Entries of the kernel: an interrupt's; an exception's, and of those by which it is known that the instruction before was not executed:
 * a fault's, one by an access or a fetch (page-fault), one never by a fetch (instruction-fault, arithmetic-fault); a trap's, which is a
 * system call's as well; and any-trap's, which is an interrupt's, too, and is told by a call of is-interrupt. A place in a stub-range that is
 * one of these goes on, before anything else, to another of them, which is the same entry. The others are functions. */
struct rule { enum kind kind; char name[64]; size_t length; bool prefix; uint64_t offset; };
struct place { uint64_t start, end; uint16_t flags; enum event event; };

#define MAX_RULES 96
#define MAX_PLACES 4096
#define ANY_FAULT (AT_EXCEPTION | AT_FAULT | AT_PAGE_FAULT)

static struct rule rules[MAX_RULES];
static size_t n_rules;
static uint8_t first_rule[1 << 16], next_rule[MAX_RULES + 1]; /* by a name's first two bytes: numbers from 1, 0 is none */
static struct place exact[MAX_PLACES], ranges[MAX_PLACES];
static size_t n_exact, n_ranges;
static struct place switch_text, return_text, image;
static struct { const char *name; uint64_t *vaddr; } wanted[MOST_WANTED];
static size_t n_wanted;
static struct { uint64_t *vaddrs; size_t n, capacity; } symbols; /* only while they are read */

static unsigned first_two(const char *name)
{
    return (uint8_t)name[0] << 8 | (uint8_t)name[1];
}

static bool rule_add(const char *kind, const char *name)
{
    struct rule *r = &rules[n_rules];
    uint8_t *link = &first_rule[first_two(name)];

    if (n_rules == MAX_RULES || strlen(name) < 2 || strlen(name) >= sizeof r->name)
        return false;
    for (r->kind = 0; r->kind < KINDS; r->kind++)
        if (!strcmp(kind, kind_names[r->kind]))
            break;
    if (r->kind == KINDS)
        return false;
    strcpy(r->name, name);
    r->length = strcspn(name, "+");
    if (name[r->length] || !strncmp(name, "0x", 2))
        r->offset = strtoull(name + (name[r->length] ? r->length + 1 : 0), NULL, 16);
    r->prefix = r->length && name[r->length - 1] == '*';
    r->length -= r->prefix;
    while (*link)
        link = &next_rule[*link];
    *link = (uint8_t)++n_rules;
    return true;
}

bool rules_load(const char *path)
{
    FILE *f = fopen(path, "r");
    char kind[32], name[128];
    bool good = f;

    while (good && fscanf(f, "%31s %127s", kind, name) == 2)
        good = rule_add(kind, name);
    if (f)
        fclose(f);
    if (!good)
        fprintf(stderr, "kdelta plugin: cannot use the rules in %s\n", path);
    return good;
}

static bool matches(const struct rule *r, const char *name, size_t length)
{
    if (length < r->length || memcmp(name, r->name, r->length))
        return false;
    return r->prefix || length == r->length || name[r->length] == '.';
}

static void remember(struct place *table, size_t *n, uint64_t vaddr, uint16_t flags, enum event event)
{
    for (size_t i = 0; i < *n; i++)
        if (table[i].start == vaddr) {
            table[i].flags |= flags;
            if (event && !(event == EVENT_SYSTEM_CALL && table[i].event)) /* which says less than the others */
                table[i].event = event;
            return;
        }
    if (*n < MAX_PLACES)
        table[(*n)++] = (struct place){ vaddr, vaddr + 1, flags, event };
}

static void apply(enum kind kind, uint64_t vaddr)
{
    switch (kind) {
    case INTERRUPT: remember(exact, &n_exact, vaddr, AT_INTERRUPT, EVENT_NONE); break;
    case INTERRUPT_RANGE: remember(ranges, &n_ranges, vaddr, AT_INTERRUPT, EVENT_NONE); break;
    case EXCEPTION: remember(exact, &n_exact, vaddr, AT_EXCEPTION, EVENT_NONE); break;
    case FAULT: remember(exact, &n_exact, vaddr, AT_EXCEPTION | AT_FAULT, EVENT_NONE); break;
    case PAGE_FAULT: remember(exact, &n_exact, vaddr, ANY_FAULT, EVENT_NONE); break;
    case ARITHMETIC: case INSN_FAULT:
        remember(exact, &n_exact, vaddr, AT_EXCEPTION | AT_FAULT | AT_ARITHMETIC, EVENT_NONE);
        break;
    case TRAP: remember(exact, &n_exact, vaddr, ANY_FAULT | AT_TRAP, EVENT_NONE); break;
    case EITHER: remember(exact, &n_exact, vaddr, ANY_FAULT | AT_TRAP | AT_EITHER, EVENT_NONE); break;
    case FORKED: remember(exact, &n_exact, vaddr, AT_EVENT, EVENT_FORKED); break;
    case STARTS: remember(exact, &n_exact, vaddr, AT_EVENT, EVENT_STARTS); break;
    case RESUMES: remember(exact, &n_exact, vaddr, AT_EVENT, EVENT_RESUMES); break;
    case EXITS: remember(exact, &n_exact, vaddr, AT_EVENT, EVENT_EXITS); break;
    case IDLES: remember(exact, &n_exact, vaddr, AT_EVENT, EVENT_IDLES); break;
    case SIGNALLED: remember(exact, &n_exact, vaddr, AT_EVENT, EVENT_SIGNALLED); break;
    case IS_INTERRUPT: remember(exact, &n_exact, vaddr, AT_EVENT, EVENT_IS_INTERRUPT); break;
    case EXECS: remember(exact, &n_exact, vaddr, AT_EVENT, EVENT_EXECS); break;
    case HANDLES: remember(exact, &n_exact, vaddr, AT_EVENT, EVENT_HANDLES); break;
    case SIGRETURN: remember(exact, &n_exact, vaddr, AT_EVENT, EVENT_SIGRETURN); break;
    case SYSTEM_CALL: remember(exact, &n_exact, vaddr, AT_EVENT, EVENT_SYSTEM_CALL); break;
    case STUB_RANGE: remember(ranges, &n_ranges, vaddr, AT_STUB, EVENT_NONE); break;
    case SWITCH: switch_text.start = vaddr; break;
    case RETURN_START: return_text.start = vaddr; break;
    case RETURN_END: return_text.end = vaddr; break;
    case KINDS: break;
    }
}

static unsigned hex_digit(char c)
{
    return (c & 15) + (c >> 6) * 9;
}

/* Calls visit for each "address type name" line: there are a hundred thousand, at each start. */
static void each_symbol(const char *text, size_t size,
                        void (*visit)(uint64_t vaddr, const char *name, size_t length))
{
    const char *end = text + size;

    for (const char *p = text, *stop; p < end; p = stop + 1) {
        const char *newline = memchr(p, '\n', end - p);
        uint64_t vaddr = 0;

        for (stop = newline ? newline : end; p < stop && *p != ' '; p++)
            vaddr = vaddr << 4 | hex_digit(*p);
        if (stop - p > 3) {
            const char *name = p + 3, *tab = memchr(name, '\t', stop - name);

            visit(vaddr, name, (tab ? tab : stop) - name);
        }
    }
}

static bool is_name(const char *name, size_t length, const char *wanted)
{
    return length == strlen(wanted) && !memcmp(name, wanted, length);
}

/* A kernel that keeps symbols of functions only has no _end: _einittext is the last before the data. */
static void find_image(uint64_t vaddr, const char *name, size_t length)
{
    if (is_name(name, length, "_text") || (!image.start && is_name(name, length, "_stext")))
        image.start = vaddr;
    if (is_name(name, length, "_end") || (!image.end && is_name(name, length, "_einittext")))
        image.end = vaddr;
}

void symbols_want(const char *name, uint64_t *vaddr)
{
    wanted[n_wanted].name = name;
    wanted[n_wanted++].vaddr = vaddr;
}

static void match_symbol(uint64_t vaddr, const char *name, size_t length)
{
    if (symbols.n == symbols.capacity) {
        symbols.capacity = symbols.capacity ? 2 * symbols.capacity : 1 << 17;
        symbols.vaddrs = must(realloc(symbols.vaddrs, symbols.capacity * sizeof *symbols.vaddrs));
    }
    symbols.vaddrs[symbols.n++] = vaddr;
    find_image(vaddr, name, length);
    for (size_t i = 0; i < n_wanted; i++)
        if (is_name(name, length, wanted[i].name))
            *wanted[i].vaddr = vaddr;
    for (unsigned i = length < 2 ? 0 : first_rule[first_two(name)]; i; i = next_rule[i])
        if (matches(&rules[i - 1], name, length))
            apply(rules[i - 1].kind, vaddr + rules[i - 1].offset);
}

static void close_one(struct place *p, uint64_t vaddr)
{
    if (p->start && vaddr > p->start && (p->end <= p->start + 1 || vaddr < p->end))
        p->end = vaddr;
}

/* A range reaches to the next symbol. */
static void close_ranges(uint64_t vaddr)
{
    for (size_t i = 0; i < n_ranges; i++)
        close_one(&ranges[i], vaddr);
    close_one(&switch_text, vaddr);
}

static int by_start(const void *a, const void *b)
{
    uint64_t x = ((const struct place *)a)->start, y = ((const struct place *)b)->start;

    return x < y ? -1 : x > y;
}

void symbols_load(const char *kallsyms, size_t size)
{
    n_exact = n_ranges = 0;
    switch_text = return_text = image = (struct place){ 0 };
    each_symbol(kallsyms, size, match_symbol);
    for (size_t i = 0; i < n_rules; i++)
        if (!strncmp(rules[i].name, "0x", 2))
            apply(rules[i].kind, rules[i].offset);
    for (size_t i = 0; i < symbols.n; i++)
        close_ranges(symbols.vaddrs[i]);
    free(symbols.vaddrs);
    memset(&symbols, 0, sizeof symbols);
    qsort(exact, n_exact, sizeof *exact, by_start);
}

bool symbols_load_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat file;
    void *text = MAP_FAILED;

    if (fd >= 0 && !fstat(fd, &file) && file.st_size)
        text = mmap(NULL, file.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    if (fd >= 0)
        close(fd);
    if (text == MAP_FAILED) {
        fprintf(stderr, "kdelta plugin: cannot read the symbols in %s\n", path);
        return false;
    }
    symbols_load(text, file.st_size);
    munmap(text, file.st_size);
    return true;
}

bool symbols_known(void)
{
    return switch_text.start && n_exact;
}

bool symbols_image(uint64_t *start, uint64_t *end)
{
    *start = image.start;
    *end = image.end;
    return image.start && image.start < image.end;
}

static const struct place *exact_at(uint64_t vaddr)
{
    struct place key = { .start = vaddr };

    return bsearch(&key, exact, n_exact, sizeof *exact, by_start);
}

uint16_t symbols_flags_at(uint64_t vaddr)
{
    const struct place *p = exact_at(vaddr);
    uint16_t flags = p ? p->flags : 0;

    for (size_t i = 0; i < n_ranges; i++)
        if ((!p || ranges[i].flags == AT_STUB) && vaddr >= ranges[i].start && vaddr < ranges[i].end)
            flags |= ranges[i].flags;
    return flags;
}

enum event symbols_event_at(uint64_t vaddr)
{
    const struct place *p = exact_at(vaddr);

    return p ? p->event : EVENT_NONE;
}

bool symbols_in_switch(uint64_t vaddr)
{
    return vaddr >= switch_text.start && vaddr < switch_text.end;
}

bool symbols_in_return_text(uint64_t vaddr)
{
    return !return_text.start || (vaddr >= return_text.start && vaddr < return_text.end);
}
