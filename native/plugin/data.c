/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of lines, and which accesses need not be told.
 *
 * An access to the line that was accessed before it changes nothing in a cache that evicts what was least recently used; nor does a
 * pair of accesses that repeats the two before it, where a set has at least two ways. So neither is told: a string operation that
 * copies is two items a line.
 */
#include "data.h"

#include "piece.h"

#define LEAST_SLOTS (1u << 12)
#define STORE 1u

/* Of a trace. */
struct item {
    uint32_t number, content;
};

struct line {
    uint64_t virtual; /* its lowest bit: STORE */
    uint64_t physical;
};

bool data_wanted;
unsigned data_line_bytes = 64;

static const struct arch *arch;
static struct line *lines;
static uint32_t n_lines, capacity;
static uint32_t *slots; /* open-addressed: number + 1 */
static uint32_t n_slots;

static struct line last[2];   /* told: the newest first */
static uint32_t last_number[2];
static bool again;            /* the older one of them was accessed again, which was not told */
static struct bytes held;     /* items of the unit that waits */

static struct {
    bool known, contradicted;
    uint64_t offset;
} image;

void data_want(const struct arch *of)
{
    data_wanted = true;
    arch = of;
}

static bool is_same(const struct line *a, const struct line *b)
{
    return a->virtual == b->virtual && a->physical == b->physical;
}

static uint64_t hash_of(const struct line *line)
{
    return mixed(mixed(line->virtual) ^ line->physical);
}

static void new_slots(uint32_t n)
{
    free(slots);
    n_slots = n;
    slots = zalloc(n_slots, sizeof *slots);
    for (uint32_t number = 0; number < n_lines; number++) {
        uint32_t i = (uint32_t)hash_of(&lines[number]) & (n_slots - 1);

        while (slots[i])
            i = (i + 1) & (n_slots - 1);
        slots[i] = number + 1;
    }
}

bool data_is_in_image(uint64_t vaddr)
{
    return vaddr - arch->image_start < arch->image_bytes;
}

/* The kernel's image is mapped as one piece; what it reads and writes in it says where. */
static void learn_image(uint64_t vaddr, uint64_t physical)
{
    if (image.known && image.offset != vaddr - physical)
        image.contradicted = true;
    image.known = true;
    image.offset = vaddr - physical;
}

static uint32_t number_of(const struct line *line)
{
    uint32_t i = (uint32_t)hash_of(line) & (n_slots - 1);

    for (; slots[i]; i = (i + 1) & (n_slots - 1))
        if (is_same(&lines[slots[i] - 1], line))
            return slots[i] - 1;
    if (n_lines == capacity) {
        capacity = capacity ? 2 * capacity : 4096;
        lines = must(realloc(lines, capacity * sizeof *lines));
    }
    lines[n_lines] = *line;
    slots[i] = ++n_lines;
    if (2 * n_lines > n_slots)
        new_slots(2 * n_slots);
    return n_lines - 1;
}

static void tell(uint32_t number)
{
    const struct item item = { DATA_ITEM | number, (uint32_t)(hash_of(&lines[number]) >> 32) };

    if (trace_piece.waiting)
        bytes_add(&held, &item, sizeof item);
    else
        piece_add(item.number, item.content);
    if (n_lines > pieces.limit)
        pieces_stop();
}

void data_release(void)
{
    const struct item *items = (const void *)held.data;

    for (size_t i = 0; i < held.size / sizeof *items; i++)
        piece_add(items[i].number, items[i].content);
    held.size = 0;
}

void data_flush(void)
{
    if (!again)
        return;
    const struct line line = last[0];
    uint32_t number = last_number[0];

    tell(last_number[1]);
    last[0] = last[1];
    last_number[0] = last_number[1];
    last[1] = line;
    last_number[1] = number;
    again = false;
}

static void access_line(const struct line *line)
{
    if (is_same(line, &last[again]))
        return;
    if (again && is_same(line, &last[0])) { /* both again, in the same order */
        again = false;
        return;
    }
    data_flush();
    if (is_same(line, &last[1])) {
        again = true;
        return;
    }
    last[1] = last[0];
    last_number[1] = last_number[0];
    last[0] = *line;
    last_number[0] = number_of(line);
    tell(last_number[0]);
}

void data_access(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *unused)
{
    (void)vcpu, (void)unused;
    uint64_t mask = ~(uint64_t)(data_line_bytes - 1), store = qemu_plugin_mem_is_store(info) ? STORE : 0;
    uint64_t last_byte = vaddr + (1u << qemu_plugin_mem_size_shift(info)) - 1;

    bool in_image = data_is_in_image(vaddr);

    if (!trace_piece.recording && (image.known || !in_image))
        return;
    struct qemu_plugin_hwaddr *address = qemu_plugin_get_hwaddr(info, vaddr);

    if (!address || qemu_plugin_hwaddr_is_io(address))
        return;
    uint64_t physical = qemu_plugin_hwaddr_phys_addr(address);

    if (in_image)
        learn_image(vaddr, physical);
    if (!trace_piece.recording)
        return;
    access_line(&(struct line){ (vaddr & mask) | store, physical & mask });
    /* What lies in another page has a place of its own, which is not known here. */
    if ((vaddr ^ last_byte) & mask && (vaddr ^ last_byte) < arch->page_bytes)
        access_line(&(struct line){ (last_byte & mask) | store, (physical + (last_byte - vaddr)) & mask });
}

void data_forget(void)
{
    n_lines = 0;
    new_slots(LEAST_SLOTS);
    memset(last, 0xff, sizeof last);
    again = false;
    held.size = 0;
}

uint32_t data_count(void)
{
    return n_lines;
}

void data_rows(struct bytes *rows)
{
    for (uint32_t i = 0; i < n_lines; i++) {
        bytes_u64(rows, lines[i].virtual);
        bytes_u64(rows, lines[i].physical);
    }
}

bool data_image_offset(uint64_t *offset)
{
    *offset = image.offset;
    return image.known && !image.contradicted;
}
