/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The plugin's trace without a guest: blocks that are told, and what is executed; the chunk of the region on standard output.
 *
 * Lines: limit ITEMS | data 1 | block BYTES ADDRESS JUMPS (2: and QEMU may have left its last instruction out) | begin BLOCK |
 *        run BLOCK | end BLOCK | cut CONTEXT | load ADDRESS | store ADDRESS; blocks count from 0, all numbers are hexadecimal
 */
#include <inttypes.h>
#include <stdlib.h>

#include "data.h"
#include "listener.h"
#include "output.h"
#include "trace.h"

static struct block *blocks[1 << 16];
static uint32_t n_blocks;
static struct region region = { .name = "made" };

/* What the plugin's other parts and QEMU would be. A physical address is the virtual one's lower half. */
struct counting now;
struct qemu_plugin_hwaddr { uint64_t virtual; } last_access;
void count_block(unsigned int vcpu, void *block) { (void)vcpu, (void)block; }
void output_warning(const char *text, uint64_t count) { fprintf(stderr, "%s (%" PRIu64 ")\n", text, count); }
void output_limit_traces(uint64_t bytes) { (void)bytes; }
bool output_has_room(uint64_t size) { return size < UINT64_MAX; }
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info) { return info; }
unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info) { return info - info; }
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
    (void)tag;
    for (size_t i = 0; i < n; i++)
        if (parts[i].size)
            fwrite(parts[i].data, 1, parts[i].size, stdout);
}

static void add_block(const char *code, uint64_t vaddr, int jumps)
{
    struct block *b = zalloc(1, sizeof *b + sizeof(uint64_t));
    struct origin *o = b->origin = zalloc(1, sizeof *o);
    uint32_t size = (uint32_t)strlen(code) / 2;

    o->vaddr = vaddr;
    o->host = 0x7f0000000000 + (uint32_t)vaddr;
    o->n_groups = 1;
    o->doubtful = jumps > 1;
    o->groups = zalloc(1, sizeof *o->groups);
    o->groups[0] = (struct group){ .insns = (uint16_t)size, .last.jumps = jumps, .end_vaddr = vaddr + size };
    o->bytes = zalloc(size, 1);
    o->n_bytes = size;
    for (uint32_t i = 0; i < size; i++)
        sscanf(code + 2 * i, "%2hhx", &o->bytes[i]);
    b->id = n_blocks;
    b->insns = (uint16_t)size;
    REPORT(translated, b);
    blocks[n_blocks++] = b;
}

static void obey(const char *word, uint64_t number)
{
    struct block *b = blocks[number & 0xffff];
    struct site site = { b, 1, MARK_NONE };

    if (!strcmp(word, "limit"))
        trace_want(number);
    else if (!strcmp(word, "data"))
        data_want(&arch_x86_64);
    else if (!strcmp(word, "begin"))
        REPORT(begin, &site);
    else if (!strcmp(word, "run") && trace_piece.recording)
        trace_block(b);
    else if (!strcmp(word, "cut"))
        REPORT(cut, (enum context)number);
    else if (!strcmp(word, "load") || !strcmp(word, "store"))
        data_access(0, word[0] == 's', number, NULL);
    else if (!strcmp(word, "end"))
        REPORT(end, &site);
}

int main(void)
{
    char line[256], word[16], code[128];
    uint64_t number;
    int jumps;

    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "block %127s %" SCNx64 " %d", code, &number, &jumps) == 3)
            add_block(code, number, jumps);
        else if (sscanf(line, "%15s %" SCNx64, word, &number) == 2)
            obey(word, number);
    }
    region.blocks = blocks;
    region.n_blocks = n_blocks;
    REPORT(output, &region);
    return 0;
}
