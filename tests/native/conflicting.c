/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The plugin's conflicts without a guest: accesses that are told; the region's chunk on standard output.
 *
 * Lines: load|store CPU INSN ADDRESS SIZE_SHIFT CONTEXT, in hexadecimal, or six words of which the first is next: another region
 * begins. A physical address is the virtual one's lower half. Or
 * "btf STRUCT FIELD" as arguments, with the section on standard input: prints where the field is, or none.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "btf.h"
#include "conflicts.h"
#include "heap.h"
#include "listener.h"
#include "output.h"
#include "task.h"

static enum context context;
static struct region region = { .name = "made" };

/* What the plugin's other parts and QEMU would be. */
struct counting now;
struct qemu_plugin_hwaddr { uint64_t virtual; } last_access;
enum context task_context(void) { return context; }
void heap_want(void) {}
static bool looked;
bool heap_look(void) { return looked = true; }
size_t heap_types(const uint8_t **btf) { *btf = (const uint8_t *)"types"; return looked ? 5 : 0; }
size_t heap_caches(const struct heap_cache **caches) { *caches = NULL; return 0; }
const struct heap_bases *heap_bases(void) { static const struct heap_bases bases = { 1, 2, { 0 } }; return &bases; }
struct heap_place heap_place_of(uint64_t vaddr) { return (struct heap_place){ 0, vaddr }; }
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info) { return info >> 8; }
unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info) { return info & 0xff; }
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *address) { return !address; }
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *address) { return (uint32_t)address->virtual; }

struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t vaddr)
{
    (void)info;
    last_access.virtual = vaddr;
    return &last_access;
}

void output_parts(const char tag[4], const struct part *parts, size_t n)
{
    uint64_t size = parts[0].size;
    uint32_t reserved = 0;

    fwrite(tag, 1, 4, stdout);
    fwrite(&reserved, sizeof reserved, 1, stdout);
    fwrite(&size, sizeof size, 1, stdout);
    for (size_t i = 0; i < n; i++)
        if (parts[i].size)
            fwrite(parts[i].data, 1, parts[i].size, stdout);
}

/* One place an instruction, as when it is translated once. */
static void *place_of(uint64_t vaddr)
{
    static struct { uint64_t vaddr; void *place; } places[256];
    size_t i = 0;

    while (places[i].place && places[i].vaddr != vaddr)
        i++;
    if (!places[i].place) {
        const struct insn insn = { .vaddr = vaddr, .facts.special = vaddr & 1 };

        places[i].vaddr = vaddr;
        places[i].place = conflicts_place(&insn);
    }
    return places[i].place;
}

static int find_field(const char *structure, const char *field)
{
    static uint8_t section[1 << 24];
    size_t size = fread(section, 1, sizeof section, stdin);
    uint32_t bytes;

    if (btf_load(section, size) && btf_offset(structure, field, &bytes))
        printf("%" PRIu32 "\n", bytes);
    else
        puts("none");
    return 0;
}

static void end_region(void)
{
    REPORT(output, &region);
    REPORT(forget);
}

int main(int argc, char **argv)
{
    char word[16];
    uint64_t insn, vaddr;
    unsigned shift, number;

    if (argc == 4)
        return find_field(argv[2], argv[3]);
    conflicts_want();
    now.region.serial = 1;
    REPORT(begin, NULL);
    while (scanf("%15s %x %" SCNx64 " %" SCNx64 " %x %x", word, &now.cpu, &insn, &vaddr, &shift, &number) == 6) {
        if (word[0] == 'n') {
            end_region();
            now.region.serial++;
            REPORT(begin, NULL);
            continue;
        }
        context = number;
        conflicts_access(0, shift | (unsigned)(word[0] == 's') << 8, vaddr, place_of(insn));
    }
    end_region();
    return 0;
}
