/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Distinct pieces by content, and the sequence of them. Memory is bounded by limits on both. */
#include "trace.h"

#include "data.h"
#include "listener.h"
#include "output.h"

#define NONE UINT32_MAX
#define LARGEST_TRACES 8 /* so many have room in the file */
#define LEAST_SLOTS (1u << 12)
#define KEPT_SLOTS (1u << 16) /* a larger table is not kept for the next region */

struct piece trace_piece;

/* A vector of u32. */
struct numbers {
    uint32_t *data;
    size_t size, capacity;
};

/* What is known of a distinct piece. */
struct kept {
    uint64_t start, hash;
    uint32_t length;
    uint32_t next; /* the piece that followed it last: a guess that spares the hash */
};

static struct {
    uint64_t limit;
    struct numbers items, sequence;
    struct bytes contexts;  /* of the sequence, as far as its segments are closed */
    struct kept *kept;
    size_t n_kept, kept_capacity;
    uint32_t *slots;        /* open-addressed: piece, or NONE */
    size_t n_slots;
    struct site begin, end;
    uint32_t last;          /* the piece before */
    bool truncated;
    struct numbers held;    /* data of the unit that waits: items, each with its content */
} trace;


static void *grown(void *data, size_t *capacity, size_t needed, size_t each)
{
    if (needed <= *capacity)
        return data;
    while (*capacity < needed)
        *capacity = *capacity ? 2 * *capacity : 4096;
    return must(realloc(data, *capacity * each));
}

static void numbers_add(struct numbers *n, const uint32_t *data, size_t size)
{
    n->data = grown(n->data, &n->capacity, n->size + size, sizeof *data);
    memcpy(n->data + n->size, data, size * sizeof *data);
    n->size += size;
}

static void new_slots(size_t n)
{
    free(trace.slots);
    trace.n_slots = n;
    trace.slots = must(malloc(n * sizeof *trace.slots));
    memset(trace.slots, 0xff, n * sizeof *trace.slots);
}

static void forget(void)
{
    trace.items.size = trace.sequence.size = trace.contexts.size = trace.n_kept = 0;
    if (!trace.slots || trace.n_slots > KEPT_SLOTS)
        new_slots(LEAST_SLOTS);
    else
        memset(trace.slots, 0xff, trace.n_slots * sizeof *trace.slots);
    trace_piece.length = 0;
    trace_piece.hash = 0;
    trace_piece.waiting = NULL;
    trace_piece.before = 0;
    trace.last = NONE;
    trace.held.size = 0;
    if (data_wanted)
        data_forget();
}

static uint64_t hash_of(const uint32_t *items, uint32_t length)
{
    uint64_t h = length;

    for (uint32_t i = 0; i < length; i++)
        h = mixed(h ^ items[i]);
    return h;
}

static bool is_same(const struct kept *k, const uint32_t *items, uint32_t length)
{
    return k->length == length && !memcmp(trace.items.data + k->start, items, length * sizeof *items);
}

static size_t slot_of(uint64_t hash, const uint32_t *items, uint32_t length)
{
    size_t mask = trace.n_slots - 1, i = hash & mask;

    for (;; i = (i + 1) & mask) {
        uint32_t piece = trace.slots[i];

        if (piece == NONE || (trace.kept[piece].hash == hash && is_same(&trace.kept[piece], items, length)))
            return i;
    }
}

static void more_slots(void)
{
    new_slots(2 * trace.n_slots);
    for (size_t piece = 0; piece < trace.n_kept; piece++) {
        size_t mask = trace.n_slots - 1, i = trace.kept[piece].hash & mask;

        while (trace.slots[i] != NONE)
            i = (i + 1) & mask;
        trace.slots[i] = (uint32_t)piece;
    }
}

static void stop_at_limit(void)
{
    trace.truncated = true;
    trace_piece.recording = false;
    trace_piece.length = 0;
    trace_piece.waiting = NULL;
    trace_piece.before = 0;
}

/* The number of the piece of that content; NONE when there is no room for one more. */
static uint32_t piece_of(const uint32_t *items, uint32_t length)
{
    uint64_t hash = hash_of(items, length);
    size_t slot = slot_of(hash, items, length);

    if (trace.slots[slot] != NONE)
        return trace.slots[slot];
    if (trace.items.size + length > trace.limit)
        return NONE;
    uint32_t piece = (uint32_t)trace.n_kept++;

    trace.kept = grown(trace.kept, &trace.kept_capacity, trace.n_kept, sizeof *trace.kept);
    trace.kept[piece] = (struct kept){ trace.items.size, hash, length, NONE };
    numbers_add(&trace.items, items, length);
    trace.slots[slot] = piece;
    if (2 * trace.n_kept > trace.n_slots)
        more_slots();
    return piece;
}

/* Keeps the first items of the piece that is open, and leaves the others in it. */
static void keep(uint32_t length)
{
    struct piece *p = &trace_piece;

    if (trace.truncated) { /* nothing may follow the gap */
        p->length = 0;
        return;
    }
    uint32_t guess = trace.last == NONE ? NONE : trace.kept[trace.last].next;
    uint32_t piece = guess != NONE && is_same(&trace.kept[guess], p->items, length)
        ? guess : piece_of(p->items, length);

    if (piece == NONE || trace.sequence.size == trace.limit) {
        stop_at_limit();
        return;
    }
    if (trace.last != NONE)
        trace.kept[trace.last].next = piece;
    trace.last = piece;
    numbers_add(&trace.sequence, &piece, 1);
    p->length -= length;
    memmove(p->items, p->items + length, p->length * sizeof *p->items);
    memmove(p->hashes, p->hashes + length, p->length * sizeof *p->hashes);
}

/* After which item of a full piece the hash was least; the last such place. */
static uint32_t least_hash(void)
{
    uint32_t least = PIECE_LEAST - 1;

    for (uint32_t i = least; i < PIECE_MOST; i++)
        if (trace_piece.hashes[i] <= trace_piece.hashes[least])
            least = i;
    return least + 1;
}

void trace_full(void)
{
    keep(trace_piece.length < PIECE_MOST ? trace_piece.length : least_hash());
}

static void translated(struct block *b)
{
    if (!b->unit)
        unit_place(b);
}

/* What waits is decided by now: whether QEMU left its last instruction out, too. */
static uint32_t unit_that_waited(void)
{
    struct piece *p = &trace_piece;
    uint32_t unit = p->before ? unit_join(p->before, p->waiting) : p->waiting->unit;

    p->before = 0;
    return unit;
}

/* And the data that it accessed. */
static void add_unit(uint32_t unit)
{
    trace_add(unit, (uint32_t)(units[unit].content >> 32));
    for (size_t i = 0; i < trace.held.size; i += 2)
        trace_add(trace.held.data[i], trace.held.data[i + 1]);
    trace.held.size = 0;
}

void trace_data(uint32_t item, uint32_t content)
{
    const uint32_t held[2] = { item, content };

    if (trace_piece.waiting)
        numbers_add(&trace.held, held, 2);
    else
        trace_add(item, content);
    if (data_count() > trace.limit)
        stop_at_limit();
}

void trace_wait(struct block *b)
{
    struct piece *p = &trace_piece;

    if (p->waiting) {
        bool straight = p->waiting->straight;
        uint32_t unit = unit_that_waited();

        if (straight && units[unit].vaddr + units[unit].bytes == b->origin->vaddr)
            p->before = unit;
        else
            add_unit(unit);
        p->waiting = NULL;
    }
    if (!p->recording)
        return; /* the limit was reached */
    if (b->waits)
        p->waiting = b;
    else if (p->before)
        add_unit(unit_join(p->before, b));
    else
        trace_add(b->unit, b->content);
    if (!p->waiting)
        p->before = 0;
}

static void begin(const struct site *site)
{
    forget();
    trace.truncated = false;
    trace.begin = *site;
    trace_piece.recording = true;
    trace_block(site->block); /* its callback came before the mark */
}

static void cut(enum context context)
{
    uint8_t value = (uint8_t)context;

    data_flush();
    if (trace_piece.waiting) {
        uint32_t unit = unit_that_waited();

        trace_piece.waiting = NULL;
        add_unit(unit);
    }
    if (trace_piece.length)
        keep(trace_piece.length);
    while (trace.contexts.size < trace.sequence.size)
        bytes_add(&trace.contexts, &value, 1);
}

static void end(const struct site *site)
{
    trace.end = *site;
    trace_piece.recording = false;
}

static void add_block(struct bytes *rows, const struct block *b)
{
    const struct origin *o = b->origin;
    const struct group *last = &o->groups[o->n_groups - 1];

    bytes_u64(rows, o->vaddr);
    bytes_u32(rows, b->id);
    bytes_u32(rows, (uint32_t)(last->end_vaddr - o->vaddr));
    bytes_u32(rows, is_silent(b));
    bytes_u32(rows, 0);
}

/* Where QEMU has the guest's physical address 0, from code of the kernel's image, which lies where its data does; 0 when that is not known.
 * The guest's memory is one piece for QEMU, too.
 */
static uint64_t ram_in_host(void)
{
    uint64_t offset, found = 0;

    if (!data_wanted || !data_image_offset(&offset))
        return 0;
    for (uint32_t unit = 1; unit < unit_count(); unit++) {
        const struct unit *u = &units[unit];

        if (!u->host)
            return 0;
        if (!data_is_in_image(u->vaddr))
            continue;
        uint64_t here = u->host - (u->vaddr - offset);

        if (found && found != here)
            return 0;
        found = here;
    }
    return found;
}

/* Those that occur in the pieces; returns how many. */
static uint64_t add_units(struct bytes *rows)
{
    uint8_t *occurs = zalloc(unit_count(), 1);
    uint64_t n = 0, ram = ram_in_host();

    for (size_t i = 0; i < trace.items.size; i++)
        if (!(trace.items.data[i] & DATA_ITEM))
            occurs[trace.items.data[i]] = 1;
    for (uint32_t unit = 0; unit < unit_count(); unit++) {
        const struct unit *u = &units[unit];

        if (!occurs[unit])
            continue;
        bytes_u64(rows, u->vaddr);
        bytes_u64(rows, u->content);
        bytes_u64(rows, u->host - ram);
        bytes_u32(rows, unit);
        bytes_u32(rows, u->bytes);
        bytes_u32(rows, u->insns);
        n++;
    }
    free(occurs);
    return n;
}

static void add_head(struct bytes *head, const struct region *region, uint64_t n_units)
{
    uint32_t length = (uint32_t)strlen(region->name);

    bytes_u32(head, trace.truncated | (uint32_t)data_wanted << 1 | (uint32_t)(ram_in_host() != 0) << 2 |
                    (data_wanted ? data_line_bytes : 0) << 8);
    bytes_u32(head, trace.begin.block->id);
    bytes_u32(head, trace.begin.group);
    bytes_u32(head, trace.end.block->id);
    bytes_u32(head, trace.end.group);
    bytes_u32(head, length);
    bytes_u64(head, region->n_iterations + region->iterations_lost);
    bytes_u64(head, region->n_blocks);
    bytes_u64(head, n_units);
    bytes_u64(head, trace.items.size);
    bytes_u64(head, trace.n_kept);
    bytes_u64(head, trace.sequence.size);
    bytes_u64(head, data_wanted ? data_count() : 0);
    bytes_add(head, region->name, length);
}

static void say_truncated(const struct region *region)
{
    char line[sizeof region->name + 64];

    snprintf(line, sizeof line, "the trace of region %s was cut at its limit: pieces kept", region->name);
    output_warning(line, trace.sequence.size);
}

static void output(const struct region *region)
{
    struct bytes head = { 0 }, rows = { 0 }, unit_rows = { 0 }, lengths = { 0 }, lines = { 0 };

    if (!output_has_room(trace.items.size * sizeof(uint32_t) + trace.sequence.size * 5)) {
        forget();
        trace.truncated = true;
    }
    if (trace.truncated)
        say_truncated(region);
    add_head(&head, region, add_units(&unit_rows));
    for (size_t i = 0; i < region->n_blocks; i++)
        add_block(&rows, region->blocks[i]);
    for (size_t i = 0; i < trace.n_kept; i++)
        bytes_u32(&lengths, trace.kept[i].length);
    if (data_wanted)
        data_rows(&lines);
    const struct part parts[] = {
        { head.data, head.size },
        { rows.data, rows.size },
        { unit_rows.data, unit_rows.size },
        { trace.items.data, trace.items.size * sizeof *trace.items.data },
        { lengths.data, lengths.size },
        { trace.sequence.data, trace.sequence.size * sizeof *trace.sequence.data },
        { trace.contexts.data, trace.contexts.size },
        { lines.data, lines.size },
    };

    output_parts("TRCE", parts, sizeof parts / sizeof *parts);
    free(head.data);
    free(rows.data);
    free(unit_rows.data);
    free(lengths.data);
    free(lines.data);
}

void count_traced_block(unsigned int vcpu, void *data)
{
    count_block(vcpu, data);
    if (trace_piece.recording)
        trace_block(data);
}

void trace_want(uint64_t limit)
{
    static const struct listener listener = {
        .translated = translated,
        .dropped = unit_place,
        .begin = begin,
        .cut = cut,
        .end = end,
        .output = output,
    };

    trace.limit = limit < NONE ? limit : NONE - 1;
    output_limit_traces(LARGEST_TRACES * trace.limit * sizeof(uint32_t));
    listener_add(&listener);
}
