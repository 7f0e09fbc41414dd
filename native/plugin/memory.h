/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocation that ends QEMU with a clear word when there is no memory, and a vector of bytes. */
#ifndef KDELTA_MEMORY_H
#define KDELTA_MEMORY_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a variable that is used for each block: it is in this library, so its address is not looked up in a table. */
#define LOCAL __attribute__((visibility("hidden")))

static inline void *must(void *p)
{
    if (!p) {
        fputs("kdelta plugin: out of memory\n", stderr);
        abort();
    }
    return p;
}

static inline void *zalloc(size_t count, size_t size)
{
    return must(calloc(count ? count : 1, size));
}

/* One step of a hash. */
static inline uint64_t mixed(uint64_t h)
{
    h = (h + UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xbf58476d1ce4e5b9);
    return h ^ h >> 31;
}

struct bytes {
    uint8_t *data;
    size_t size, capacity;
};

static inline void bytes_add(struct bytes *b, const void *data, size_t size)
{
    if (b->size + size > b->capacity) {
        while (b->size + size > b->capacity)
            b->capacity = b->capacity ? 2 * b->capacity : 4096;
        b->data = must(realloc(b->data, b->capacity));
    }
    memcpy(b->data + b->size, data, size);
    b->size += size;
}

static inline void bytes_u32(struct bytes *b, uint32_t value) { bytes_add(b, &value, sizeof value); }
static inline void bytes_u64(struct bytes *b, uint64_t value) { bytes_add(b, &value, sizeof value); }

#endif
