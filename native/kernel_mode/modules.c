/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The program and the libraries that are loaded, by their program headers. */
#define _GNU_SOURCE
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#include "call.h"

struct list {
    struct module *modules;
    unsigned count;
};

static void add_segment(struct module *module, uint8_t *base, const ElfW(Phdr) * segment)
{
    struct span span = {base + segment->p_vaddr, base + segment->p_vaddr + segment->p_memsz};

    if (span.begin < module->all.begin)
        module->all.begin = span.begin;
    if (span.end > module->all.end)
        module->all.end = span.end;
    if (segment->p_flags & PF_X && module->texts < SEGMENTS_MOST)
        module->text[module->texts++] = (struct span){span.begin, base + segment->p_vaddr + segment->p_filesz};
}

/* The note of a linker that says which build of a file this is. */
static void find_build_id(struct module *module, const uint8_t *note, uint64_t bytes)
{
    for (const uint8_t *end = note + bytes; note + sizeof(ElfW(Nhdr)) <= end;) {
        const ElfW(Nhdr) *header = (const void *)note;
        const uint8_t *name = note + sizeof(*header);
        const uint8_t *content = name + ((header->n_namesz + 3) & ~3u);

        if (header->n_type == NT_GNU_BUILD_ID && header->n_namesz == sizeof("GNU") && !memcmp(name, "GNU", 4)) {
            module->build_id = content;
            module->build_id_bytes = header->n_descsz;
        }
        note = content + ((header->n_descsz + 3) & ~3u);
    }
}

static int add(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct list *list = argument;
    uint8_t *base = (uint8_t *)info->dlpi_addr;
    const uint8_t *vdso = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
    struct module module = {
        .name = info->dlpi_name && *info->dlpi_name ? info->dlpi_name : "the program",
        .base = base,
        .all = {(uint8_t *)UINTPTR_MAX, NULL},
    };

    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

        if (segment->p_type == PT_LOAD)
            add_segment(&module, base, segment);
        else if (segment->p_type == PT_GNU_EH_FRAME)
            module.unwind_table = base + segment->p_vaddr;
        else if (segment->p_type == PT_NOTE && segment->p_align <= 4)
            find_build_id(&module, base + segment->p_vaddr, segment->p_memsz);
    }
    module.vdso = vdso && module.all.begin <= vdso && vdso < module.all.end;
    if (list->count == MODULES_MOST)
        return 1;
    list->modules[list->count++] = module;
    return 0;
}

unsigned kc_modules_find(struct module *modules)
{
    struct list list = {modules, 0};

    dl_iterate_phdr(add, &list);
    return list.count;
}
