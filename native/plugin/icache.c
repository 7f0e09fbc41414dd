/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where and whose the misses are. */
#include "icache.h"

#include "listener.h"
#include "output.h"
#include "trace.h"

#define MOST_SETS (1u << 16)
#define MOST_WAYS 64u
#define LEAST_LINE 4u
#define MOST_LINE 4096u
#define MOST_RECENT_BYTES (1u << 19)

struct icache icache;

/* Misses by what was to be fetched first of the line: that does not depend on where translations end. */
struct place {
    uint64_t address;
    uint64_t misses[CONTEXTS]; /* of the region that is active */
    uint64_t waiting;          /* until the segment closes, and its context is known */
};

static struct {
    struct place *places;      /* open-addressed; an empty one has address 0 */
    size_t n_places, capacity;
    struct bytes recent;       /* addresses that were missed */
    struct bytes waiting;      /* those of places that wait */
    size_t ids;                /* that the table of blocks has room for */
    uint64_t misses[CONTEXTS];
} found;

static bool is_power_of_two(unsigned long n)
{
    return n && !(n & (n - 1));
}

static void make_room(uint32_t id)
{
    size_t ids = found.ids ? found.ids : 4096;

    if (id < found.ids)
        return;
    while (ids <= id)
        ids *= 2;
    icache.fetches = must(realloc(icache.fetches, ids * sizeof *icache.fetches));
    memset(icache.fetches + found.ids, 0, (ids - found.ids) * sizeof *icache.fetches);
    found.ids = ids;
}

/* The block's place in lines: when it is translated, and when its end turns out to be another. */
static void place(struct block *b)
{
    const struct origin *o = b->origin;
    uint64_t last_byte = o->groups[o->n_groups - 1].end_vaddr - 1;

    make_room(b->id);
    struct fetch *f = &icache.fetches[b->id];

    f->line = o->vaddr / icache.line_bytes;
    f->lines = (uint32_t)(last_byte / icache.line_bytes - f->line) + 1;
}

static struct place *slot_of(struct place *places, size_t capacity, uint64_t address)
{
    size_t i = (size_t)mixed(address) & (capacity - 1);

    while (places[i].address && places[i].address != address)
        i = (i + 1) & (capacity - 1);
    return &places[i];
}

static struct place *place_of(uint64_t address)
{
    if (2 * found.n_places >= found.capacity) {
        size_t capacity = found.capacity ? 2 * found.capacity : 1 << 14;
        struct place *places = zalloc(capacity, sizeof *places);

        for (size_t i = 0; i < found.capacity; i++)
            if (found.places[i].address)
                *slot_of(places, capacity, found.places[i].address) = found.places[i];
        free(found.places);
        found.places = places;
        found.capacity = capacity;
    }
    struct place *p = slot_of(found.places, found.capacity, address);

    found.n_places += !p->address;
    p->address = address;
    return p;
}

/* Without a region only those of the block under way are kept: the next region may begin in it. */
static void forget_all_but_last(void)
{
    found.recent.size -= icache.block_starts;
    memmove(found.recent.data, found.recent.data + icache.block_starts, found.recent.size);
    icache.block_starts = 0;
}

static void count_recent(void)
{
    uint64_t address;

    for (size_t at = 0; at < found.recent.size; at += sizeof address) {
        memcpy(&address, found.recent.data + at, sizeof address);
        if (!place_of(address)->waiting++)
            bytes_u64(&found.waiting, address);
    }
    found.recent.size = icache.block_starts = 0;
}

static void tidy(void)
{
    if (now.region.serial)
        count_recent();
    else
        forget_all_but_last();
    icache.recent_bytes = found.recent.size;
}

void icache_missed(const struct block *b, uint64_t line)
{
    uint64_t start = line * icache.line_bytes;

    if (found.recent.size >= MOST_RECENT_BYTES)
        tidy();
    bytes_u64(&found.recent, start > b->origin->vaddr ? start : b->origin->vaddr);
    icache.recent_bytes = found.recent.size;
}

/* The region begins in the block under way, which has been fetched. */
static void begin(const struct site *site)
{
    (void)site;
    memset(found.misses, 0, sizeof found.misses);
    for (size_t i = 0; i < found.capacity; i++)
        memset(found.places[i].misses, 0, sizeof found.places[i].misses);
}

static void cut(enum context context)
{
    uint64_t address;

    tidy();
    for (size_t at = 0; at < found.waiting.size; at += sizeof address) {
        memcpy(&address, found.waiting.data + at, sizeof address);
        struct place *p = place_of(address);

        p->misses[context] += p->waiting;
        found.misses[context] += p->waiting;
        p->waiting = 0;
    }
    found.waiting.size = 0;
}

static void add_rows(struct bytes *rows)
{
    for (size_t i = 0; i < found.capacity; i++) {
        const struct place *p = &found.places[i];

        if (!(p->misses[OWN] | p->misses[INTERRUPTS] | p->misses[OTHER]))
            continue;
        bytes_u64(rows, p->address);
        bytes_add(rows, p->misses, sizeof p->misses);
    }
}

static void output(const struct region *region)
{
    struct bytes head = { 0 }, rows = { 0 };
    uint32_t length = (uint32_t)strlen(region->name);

    bytes_u32(&head, icache.sets);
    bytes_u32(&head, icache.ways);
    bytes_u32(&head, icache.line_bytes);
    bytes_u32(&head, length);
    bytes_add(&head, found.misses, sizeof found.misses);
    bytes_add(&head, region->name, length);
    add_rows(&rows);
    if (output_has_room(rows.size)) {
        const struct part parts[] = { { head.data, head.size }, { rows.data, rows.size } };

        output_parts("MISS", parts, sizeof parts / sizeof *parts);
    }
    free(head.data);
    free(rows.data);
}

void count_fetched_block(unsigned int vcpu, void *data)
{
    count_traced_block(vcpu, data);
    icache_fetch(data);
}

bool icache_want(const char *geometry)
{
    static const struct listener listener = {
        .translated = place,
        .dropped = place,
        .begin = begin,
        .cut = cut,
        .output = output,
    };
    unsigned sets, ways, line;
    int end = 0;

    if (sscanf(geometry, "%ux%ux%u%n", &sets, &ways, &line, &end) != 3 || geometry[end] ||
        !is_power_of_two(sets) || sets > MOST_SETS || !ways || ways > MOST_WAYS ||
        !is_power_of_two(line) || line < LEAST_LINE || line > MOST_LINE) {
        fprintf(stderr, "kdelta plugin: no cache has the geometry %s\n", geometry);
        return false;
    }
    icache.sets = sets;
    icache.ways = ways;
    icache.line_bytes = line;
    icache.tags = zalloc((size_t)sets * ways, sizeof *icache.tags);
    listener_add(&listener);
    return true;
}
