/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Objects of the guest kernel's heap: of which cache an address is. */
#ifndef KDELTA_HEAP_H
#define KDELTA_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpus.h"

#define HEAP_NAME_BYTES 32

struct heap_cache {
    uint64_t vaddr;             /* of the kernel's struct kmem_cache */
    char name[HEAP_NAME_BYTES]; /* as /proc/slabinfo has it; cut */
    uint32_t object_bytes;      /* from one object to the next */
    uint32_t users;             /* how many caches it was merged of */
};

/* An object, or a kernel stack. */
struct heap_place {
    uint32_t cache; /* its number, from 1; 0: it is of none */
    uint64_t start;
};
#define HEAP_STACK UINT32_MAX /* as a cache's number */

void heap_want(void);
/* Looks at the caches that there are now; from kernel code, as user code may have no mapping of the kernel. False where it saw nothing.
 * A kernel that does not describe its types has no caches that are known.
 */
bool heap_look(void);
/* That description, BTF, which is read once; empty where there is none. */
size_t heap_types(const uint8_t **btf);
size_t heap_caches(const struct heap_cache **caches);
/* Where all memory is mapped, where the struct page of each page is, and what is added to the address of a variable of each CPU's own,
 * by the kernel's number of the CPU.
 */
struct heap_bases {
    uint64_t direct_map, pages, per_cpu[MOST_CPUS];
};
const struct heap_bases *heap_bases(void);
/* Of an address in the kernel's mapping of all memory, or in its other area, where stacks may be. */
struct heap_place heap_place_of(uint64_t vaddr);
#endif
