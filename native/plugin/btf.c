/* SPDX-License-Identifier: GPL-2.0-or-later */
/* As much of BTF as it takes to find the field of a struct. Numbers in it are this host's. */
#include "btf.h"

#include <string.h>

#include "memory.h"

#define MAGIC 0xeb9f
#define DEEPEST 8 /* unnamed members within each other */

enum { INT = 1, ARRAY = 3, STRUCT, UNION, ENUM, FUNC_PROTO = 13, VAR, DATASEC, DECL_TAG = 17, ENUM64 = 19 };

struct header {
    uint16_t magic;
    uint8_t version, flags;
    uint32_t header_bytes, types_start, types_bytes, names_start, names_bytes;
};

struct type {
    uint32_t name, info, size;
};

struct member {
    uint32_t name, type, offset;
};

static const struct type **types; /* by number; the first is of number 1 */
static size_t n_types, capacity;
static const char *names;
static uint32_t names_bytes;

static unsigned kind_of(const struct type *t)
{
    return t->info >> 24 & 31;
}

static uint32_t members_of(const struct type *t)
{
    return t->info & 0xffff;
}

/* What follows a type. */
static size_t rest_of(const struct type *t)
{
    switch (kind_of(t)) {
    case INT: case VAR: case DECL_TAG: return 4;
    case ARRAY: return 12;
    case STRUCT: case UNION: case DATASEC: case ENUM64: return 12 * members_of(t);
    case ENUM: case FUNC_PROTO: return 8 * members_of(t);
    default: return 0;
    }
}

static const char *name_at(uint32_t offset)
{
    return offset < names_bytes ? names + offset : "";
}

bool btf_load(const uint8_t *data, size_t size)
{
    struct header h;
    size_t at;

    n_types = 0;
    if (size < sizeof h)
        return false;
    memcpy(&h, data, sizeof h);
    if (h.magic != MAGIC || (uint64_t)h.header_bytes + h.types_start + h.types_bytes > size || h.types_bytes % 4 ||
        (uint64_t)h.header_bytes + h.names_start + h.names_bytes > size || !h.names_bytes ||
        data[h.header_bytes + h.names_start + h.names_bytes - 1])
        return false;
    names = (const char *)data + h.header_bytes + h.names_start;
    names_bytes = h.names_bytes;
    data += h.header_bytes + h.types_start;
    for (at = 0; at + sizeof(struct type) <= h.types_bytes; at += sizeof(struct type) + rest_of(types[n_types++])) {
        if (n_types == capacity) {
            capacity = capacity ? 2 * capacity : 1 << 16;
            types = must(realloc(types, capacity * sizeof(void *)));
        }
        types[n_types] = (const void *)(data + at);
        if (rest_of(types[n_types]) > h.types_bytes - at - sizeof(struct type))
            break;
    }
    return n_types;
}

static bool find(const struct type *t, const char *field, unsigned depth, uint32_t *bytes)
{
    const struct member *members = (const void *)(t + 1);

    if ((kind_of(t) != STRUCT && kind_of(t) != UNION) || depth > DEEPEST)
        return false;
    for (uint32_t i = 0; i < members_of(t); i++) {
        const char *name = name_at(members[i].name);
        uint32_t offset = (members[i].offset & 0xffffff) / 8; /* in bits, below a bit field's size */

        if (!strcmp(name, field)) {
            *bytes = offset;
            return true;
        }
        if (!*name && members[i].type - 1 < n_types && find(types[members[i].type - 1], field, depth + 1, bytes)) {
            *bytes += offset;
            return true;
        }
    }
    return false;
}

bool btf_offset(const char *structure, const char *field, uint32_t *bytes)
{
    for (size_t i = 0; i < n_types; i++)
        if (kind_of(types[i]) == STRUCT && !strcmp(name_at(types[i]->name), structure) && find(types[i], field, 0, bytes))
            return true;
    return false;
}
