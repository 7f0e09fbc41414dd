/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds functions of the vDSO, since a static libc may go without. */
#include "bench.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

static const void *at(const ElfW(Ehdr) *image, size_t offset)
{
    return (const char *)image + offset;
}

/* __vdso_NAME or __kernel_NAME: architectures differ. */
static bool is_name(const char *symbol, const char *call)
{
    static const char *const prefixes[] = {"__vdso_", "__kernel_"};

    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (!strncmp(symbol, prefixes[i], strlen(prefixes[i])) && !strcmp(symbol + strlen(prefixes[i]), call))
            return true;
    return false;
}

void *vdso_function(const char *name)
{
    const ElfW(Ehdr) *image = (const void *)getauxval(AT_SYSINFO_EHDR);
    const ElfW(Shdr) *sections, *symbols = NULL;

    if (!image || !image->e_shnum)
        return NULL;
    sections = at(image, image->e_shoff);
    for (int i = 0; i < image->e_shnum; i++)
        if (sections[i].sh_type == SHT_DYNSYM)
            symbols = &sections[i];
    if (!symbols)
        return NULL;
    for (size_t i = 0; i < symbols->sh_size / sizeof(ElfW(Sym)); i++) {
        const ElfW(Sym) *symbol = (const ElfW(Sym) *)at(image, symbols->sh_offset) + i;

        if (is_name(at(image, sections[symbols->sh_link].sh_offset + symbol->st_name), name))
            return (void *)at(image, symbol->st_value);
    }
    return NULL;
}
