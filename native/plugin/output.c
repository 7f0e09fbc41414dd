/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes what was counted, chunk by chunk, as it becomes known, so that a run that dies keeps what it had. */
#include "output.h"

#include <inttypes.h>

#include "kinds.h"

static FILE *out;
static uint64_t written, regions, regions_written, traces_written, traces_limit, warnings;

/* A guest that sends for ever must not fill the disk. The largest honest message is kallsyms, of some 10 MB. */
#define MESSAGE_LIMIT_BYTES (UINT64_C(64) << 20)
#define MESSAGE_LEAST_BYTES 64 /* what even an empty one counts for */
#define MOST_WARNINGS 1000
#define REGIONS_LIMIT 10000
#define REGIONS_LIMIT_BYTES (UINT64_C(256) << 20) /* all operations of all workloads take some 10 MB */

void output_parts(const char tag[4], const struct part *parts, size_t n)
{
    uint32_t reserved = 0;
    uint64_t size = 0;

    if (!out)
        return;
    for (size_t i = 0; i < n; i++)
        size += parts[i].size;
    fwrite(tag, 1, 4, out);
    fwrite(&reserved, sizeof reserved, 1, out);
    fwrite(&size, sizeof size, 1, out);
    for (size_t i = 0; i < n; i++)
        if (parts[i].size)
            fwrite(parts[i].data, 1, parts[i].size, out);
    if (fflush(out)) {
        perror("kdelta plugin: cannot write the counts");
        fclose(out);
        out = NULL; /* no END chunk: the reader will say that the file is cut short */
    }
}

static void chunk(const char tag[4], const void *data, uint64_t size)
{
    output_parts(tag, &(struct part){ data, size }, 1);
}

bool output_open(const char *path, const struct arch *arch)
{
    struct bytes head = { 0 };

    out = fopen(path, "wb");
    if (!out) {
        fprintf(stderr, "kdelta plugin: cannot create %s\n", path);
        return false;
    }
    bytes_u32(&head, 1); /* version of the format */
    for (size_t i = 0; arch->special_names[i]; i++)
        bytes_add(&head, arch->special_names[i], strlen(arch->special_names[i]) + 1);
    chunk("HEAD", head.data, head.size);
    free(head.data);
    return true;
}

void output_kind(const char *name)
{
    chunk("KIND", name, strlen(name));
}

void output_message(const struct bytes *message)
{
    static const char overflow[] = "overflow\n";

    if (written > MESSAGE_LIMIT_BYTES)
        return;
    written += message->size + MESSAGE_LEAST_BYTES;
    if (written <= MESSAGE_LIMIT_BYTES)
        chunk("MSG ", message->data, message->size);
    else
        chunk("MSG ", overflow, sizeof overflow - 1); /* this one and all that follow are dropped */
}

void output_warning(const char *text, uint64_t count)
{
    char line[512];
    int n = snprintf(line, sizeof line, "%s (%" PRIu64 ")", text, count);

    if (warnings++ >= MOST_WARNINGS)
        return;
    chunk("WARN", line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

void output_marks_at_once(const char *active, const char *begun, size_t length)
{
    static bool known;
    char line[1024];
    struct bytes message = {.data = (uint8_t *)line};
    int n;

    if (known)
        return;
    known = true;
    n = snprintf(line, sizeof line, "marks-at-once\n%s and %.*s", active, (int)(length < 255 ? length : 255), begun);
    message.size = (size_t)n;
    output_message(&message);
}

void output_define(struct bytes *out_bytes, struct block *b)
{
    struct origin *o = b->origin;

    if (o->defined)
        return;
    bytes_u32(out_bytes, b->id);
    bytes_u32(out_bytes, o->n_bytes);
    bytes_u64(out_bytes, o->vaddr);
    bytes_u32(out_bytes, b->user);
    bytes_u32(out_bytes, o->n_groups);
    for (uint16_t i = 0; i < o->n_groups; i++) {
        const struct group *g = &o->groups[i];
        const uint8_t facts[6] = {
            kinds_by_bytes(&g->last), (g->last.is_string || g->last.optional) + g->last.repeats, g->last.element_bytes,
            g->last.loads, g->last.stores, 0,
        };

        bytes_add(out_bytes, &g->insns, sizeof g->insns);
        bytes_add(out_bytes, &g->inner_loads, sizeof g->inner_loads);
        bytes_add(out_bytes, &g->inner_stores, sizeof g->inner_stores);
        bytes_add(out_bytes, facts, sizeof facts);
    }
    bytes_add(out_bytes, o->bytes, o->n_bytes);
    o->defined = true;
}

static void row_of(struct bytes *rows, const struct block *b, uint32_t place, const struct tally *t)
{
    if (!t->entered && !t->lost && !t->elements && !t->mmio)
        return;
    bytes_u32(rows, b->id);
    bytes_u32(rows, place);
    bytes_add(rows, t, sizeof *t);
}

static void rows_of(struct bytes *rows, const struct block *b)
{
    const struct origin *o = b->origin;

    for (uint16_t i = 0; i < o->n_groups; i++)
        for (uint32_t context = 0; context < CONTEXTS; context++) {
            uint32_t place = (uint32_t)i | context << 16;

            row_of(rows, b, place, &o->groups[i].sum[context]);
            for (const struct kind_count *c = o->groups[i].kinds; c; c = c->next)
                row_of(rows, b, place | (uint32_t)c->kind << 24, &(struct tally){ .entered = c->sum[context] });
        }
}

/* Whether one region more is taken. The first that is not is reported, and the run has failed then. */
static bool takes_region(void)
{
    static bool said;
    char line[64];
    int n;

    if (regions < REGIONS_LIMIT && regions_written < REGIONS_LIMIT_BYTES) {
        regions++;
        return true;
    }
    n = snprintf(line, sizeof line, "many-regions\n%d regions, or %d MiB of their counts", REGIONS_LIMIT,
                 (int)(REGIONS_LIMIT_BYTES >> 20));
    if (!said)
        chunk("MSG ", line, (size_t)n);
    said = true;
    return false;
}

/* The CPU that began the region comes first. */
static void cpus_of(const struct region *region)
{
    struct { struct iteration of; uint64_t idle; } rows[MOST_CPUS];

    for (unsigned i = 0, at = 1; i < n_cpus; i++) {
        unsigned row = i == region->began_on ? 0 : at++;

        rows[row].of = region->by_cpu[i];
        rows[row].idle = region->idle_by_cpu[i];
    }
    chunk("CPUS", rows, n_cpus * sizeof *rows);
}

bool output_region(const struct region *region)
{
    struct bytes blocks = { 0 }, r = { 0 };
    uint32_t name_length = (uint32_t)strlen(region->name);

    if (!takes_region())
        return false;
    bytes_u32(&r, name_length);
    bytes_add(&r, region->name, name_length);
    bytes_u64(&r, region->iterations_lost);
    bytes_u64(&r, region->n_iterations);
    bytes_add(&r, region->iterations, region->n_iterations * sizeof *region->iterations);
    bytes_add(&r, &region->whole, sizeof region->whole);
    for (size_t i = 0; i < region->n_blocks; i++) {
        output_define(&blocks, region->blocks[i]);
        rows_of(&r, region->blocks[i]);
    }
    chunk("BLKS", blocks.data, blocks.size);
    chunk("REGN", r.data, r.size);
    regions_written += blocks.size + r.size;
    free(blocks.data);
    free(r.data);
    if (n_cpus > 1)
        cpus_of(region);
    return true;
}

void output_blocks(const struct bytes *definitions)
{
    chunk("BLKS", definitions->data, definitions->size);
}

void output_limit_traces(uint64_t bytes)
{
    traces_limit = bytes;
}

bool output_has_room(uint64_t size)
{
    if (size > traces_limit - traces_written)
        return false;
    traces_written += size;
    return true;
}

static void add_seen(uint64_t vaddr, uint32_t size, void *data)
{
    bytes_u64(data, vaddr);
    bytes_u32(data, size);
}

void output_seen(void)
{
    struct bytes seen = { 0 };

    seen_each(add_seen, &seen);
    chunk("SEEN", seen.data, seen.size);
    free(seen.data);
}

void output_end(void)
{
    chunk("END ", "", 0);
}
