/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Objects are found as the kernel finds them: from the page to its slab, and from that to the cache.
 *
 * A page that is no slab has something else where a slab has its cache. So a cache is one of those in the kernel's list, and nothing else.
 */
#include "heap.h"

#include <string.h>

#include "btf.h"
#include "cpus.h"
#include "memory.h"
#include "qemu_api.h"
#include "symbols.h"
#include "task.h"

#define PAGE_BYTES 4096u
#define STACK_BYTES 16384u /* and where they begin: THREAD_SIZE of x86-64 */
#define STRUCT_PAGE_BYTES 64u /* as any x86-64 kernel of the usual configs has it */
#define MOST_CACHES 4096u
#define MOST_TYPES_BYTES (UINT64_C(64) << 20)
#define PAGE_OFFSET UINT64_C(0xffff888000000000) /* of a kernel that has no variable for it: Documentation/arch/x86/x86_64/mm.rst */
#define VMEMMAP UINT64_C(0xffffea0000000000)
#define DIRECT_MAP_BYTES (UINT64_C(64) << 40)

static struct { uint32_t list, name, size, refcount, cache; } at; /* offsets of fields in bytes */
static bool known;
static uint8_t *types;
static size_t types_bytes;
static uint64_t list_head, page_offset_base, vmemmap_base, per_cpu_offset, types_start, types_end; /* where these variables are; 0: there is none */
static struct heap_bases bases = { .direct_map = PAGE_OFFSET, .pages = VMEMMAP };

static struct heap_cache *caches;
static size_t n_caches, capacity;

void heap_want(void)
{
    symbols_want("slab_caches", &list_head);
    symbols_want("page_offset_base", &page_offset_base);
    symbols_want("vmemmap_base", &vmemmap_base);
    symbols_want("__per_cpu_offset", &per_cpu_offset);
    symbols_want("__start_BTF", &types_start);
    symbols_want("__stop_BTF", &types_end);
}

#if PLUGIN_API >= 4

static bool read_bytes(uint64_t vaddr, void *data, size_t size)
{
    static glib_byte_array *read;

    if (!read)
        read = g_byte_array_new();
    if (!qemu_plugin_read_memory_vaddr(vaddr, read, size) || read->len != size)
        return false;
    memcpy(data, read->data, size);
    return true;
}

#else

static bool read_bytes(uint64_t vaddr, void *data, size_t size)
{
    (void)vaddr, (void)data, (void)size;
    return false;
}

#endif

static bool read_u64(uint64_t vaddr, uint64_t *value)
{
    return read_bytes(vaddr, value, sizeof *value);
}

static void read_name(uint64_t vaddr, char name[HEAP_NAME_BYTES])
{
    size_t i = 0;

    while (i < HEAP_NAME_BYTES - 1 && read_bytes(vaddr + i, &name[i], 1) && name[i])
        i++;
    memset(name + i, 0, HEAP_NAME_BYTES - i);
}

static bool read_cache(struct heap_cache *cache)
{
    uint64_t name;

    if (!read_u64(cache->vaddr + at.name, &name) || !read_bytes(cache->vaddr + at.size, &cache->object_bytes, 4) ||
        !read_bytes(cache->vaddr + at.refcount, &cache->users, 4))
        return false;
    read_name(name, cache->name);
    return cache->object_bytes;
}

static void read_types(void)
{
    size_t size = types_end - types_start;

    if (!types_start || types_end <= types_start || size > MOST_TYPES_BYTES)
        return;
    types = must(realloc(types, size));
    if (!read_bytes(types_start, types, size))
        return;
    types_bytes = size;
    known = btf_load(types, types_bytes) && btf_offset("kmem_cache", "list", &at.list) && btf_offset("kmem_cache", "name", &at.name) &&
        btf_offset("kmem_cache", "size", &at.size) && btf_offset("kmem_cache", "refcount", &at.refcount) &&
        btf_offset("slab", "slab_cache", &at.cache);
}

/* Whether the kernel's variables could be read. */
static bool read_bases(void)
{
    if (per_cpu_offset && !read_bytes(per_cpu_offset, bases.per_cpu, n_cpus * sizeof *bases.per_cpu))
        return false;
    return (!page_offset_base || read_u64(page_offset_base, &bases.direct_map)) && (!vmemmap_base || read_u64(vmemmap_base, &bases.pages));
}

static void read_caches(void)
{
    uint64_t link = list_head;

    n_caches = 0;
    while (link && read_u64(link, &link) && link != list_head && n_caches < MOST_CACHES) {
        if (n_caches == capacity) {
            capacity = capacity ? 2 * capacity : 256;
            caches = must(realloc(caches, capacity * sizeof *caches));
        }
        caches[n_caches].vaddr = link - at.list;
        if (read_cache(&caches[n_caches]))
            n_caches++;
    }
}

bool heap_look(void)
{
    if (!read_bases())
        return false;
    if (!types_bytes)
        read_types();
    if (known)
        read_caches();
    return !known || n_caches;
}

size_t heap_types(const uint8_t **btf)
{
    *btf = types;
    return types_bytes;
}

const struct heap_bases *heap_bases(void)
{
    return &bases;
}

size_t heap_caches(const struct heap_cache **found)
{
    *found = caches;
    return n_caches;
}

static struct heap_place object_at(uint64_t vaddr)
{
    uint64_t number = (vaddr - bases.direct_map) / PAGE_BYTES, page[2], head = bases.pages + number * STRUCT_PAGE_BYTES, cache;

    if (!read_bytes(head, page, sizeof page))
        return (struct heap_place){ 0 };
    if (page[1] & 1) /* a tail: compound_head, or as of 7.2 a mask that makes its head of its own address */
        head = page[1] >> 32 == UINT32_MAX ? head & (page[1] - 1) : page[1] - 1;
    if (!read_u64(head + at.cache, &cache))
        return (struct heap_place){ 0 };
    for (uint32_t i = 0; i < n_caches; i++)
        if (caches[i].vaddr == cache) {
            uint64_t start = bases.direct_map + (head - bases.pages) / STRUCT_PAGE_BYTES * PAGE_BYTES;

            return (struct heap_place){ i + 1, vaddr - (vaddr - start) % caches[i].object_bytes };
        }
    return (struct heap_place){ 0 };
}

/* Whether a task's stack pointer is in the stack that begins there. */
static void compare_stack(uint64_t key, void *place)
{
    struct heap_place *p = place;
    uint64_t pointer;

    if (read_u64(key, &pointer) && pointer / STACK_BYTES * STACK_BYTES == p->start)
        p->cache = HEAP_STACK;
}

struct heap_place heap_place_of(uint64_t vaddr)
{
    struct heap_place p = { 0 };

    if (known && vaddr >= bases.direct_map && vaddr - bases.direct_map < DIRECT_MAP_BYTES)
        p = object_at(vaddr);
    if (!p.cache) {
        p.start = vaddr / STACK_BYTES * STACK_BYTES;
        task_each_key(compare_stack, &p);
    }
    return p;
}
