/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Units as they are executed: straight code in one, with its data after it. What a region's trace was is written when it ends. */
#include "trace.h"

#include "count.h"
#include "data.h"
#include "listener.h"
#include "output.h"
#include "unit.h"

#define LARGEST_TRACES 8 /* so many have room in the file */

static struct {
    struct bytes contexts;  /* of the sequence, as far as its segments are closed */
    struct site begin, end;
} trace;

static void forget(void)
{
    pieces_forget();
    trace.contexts.size = 0;
    if (data_wanted)
        data_forget();
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
    piece_add(unit, (uint32_t)(units[unit].content >> 32));
    if (data_wanted)
        data_release();
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
        piece_add(b->unit, b->content);
    if (!p->waiting)
        p->before = 0;
}

static void begin(const struct site *site)
{
    forget();
    pieces.truncated = false;
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
    piece_end();
    while (trace.contexts.size < pieces.sequence.size)
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

    for (size_t i = 0; i < pieces.items.size; i++)
        if (!(pieces.items.data[i] & DATA_ITEM))
            occurs[pieces.items.data[i]] = 1;
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

    bytes_u32(head, pieces.truncated | (uint32_t)data_wanted << 1 | (uint32_t)(ram_in_host() != 0) << 2 |
                    (data_wanted ? data_line_bytes : 0) << 8);
    bytes_u32(head, trace.begin.block->id);
    bytes_u32(head, trace.begin.group);
    bytes_u32(head, trace.end.block->id);
    bytes_u32(head, trace.end.group);
    bytes_u32(head, length);
    bytes_u64(head, region->n_iterations + region->iterations_lost);
    bytes_u64(head, region->n_blocks);
    bytes_u64(head, n_units);
    bytes_u64(head, pieces.items.size);
    bytes_u64(head, pieces.n_kept);
    bytes_u64(head, pieces.sequence.size);
    bytes_u64(head, data_wanted ? data_count() : 0);
    bytes_add(head, region->name, length);
}

static void say_truncated(const struct region *region)
{
    char line[sizeof region->name + 64];

    snprintf(line, sizeof line, "the trace of region %s was cut at its limit: pieces kept", region->name);
    output_warning(line, pieces.sequence.size);
}

static void output(const struct region *region)
{
    struct bytes head = { 0 }, rows = { 0 }, unit_rows = { 0 }, lengths = { 0 }, lines = { 0 };

    if (!output_has_room(pieces.items.size * sizeof(uint32_t) + pieces.sequence.size * 5)) {
        forget();
        pieces.truncated = true;
    }
    if (pieces.truncated)
        say_truncated(region);
    add_head(&head, region, add_units(&unit_rows));
    for (size_t i = 0; i < region->n_blocks; i++)
        add_block(&rows, region->blocks[i]);
    for (size_t i = 0; i < pieces.n_kept; i++)
        bytes_u32(&lengths, pieces.kept[i].length);
    if (data_wanted)
        data_rows(&lines);
    const struct part parts[] = {
        { head.data, head.size },
        { rows.data, rows.size },
        { unit_rows.data, unit_rows.size },
        { pieces.items.data, pieces.items.size * sizeof *pieces.items.data },
        { lengths.data, lengths.size },
        { pieces.sequence.data, pieces.sequence.size * sizeof *pieces.sequence.data },
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

    pieces.limit = limit < NONE ? limit : NONE - 1;
    output_limit_traces(LARGEST_TRACES * pieces.limit * sizeof(uint32_t));
    listener_add(&listener);
}
