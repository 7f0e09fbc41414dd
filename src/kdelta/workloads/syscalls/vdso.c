/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds functions of the vDSO, since a static libc may go without. */
#include "bench.h"

#include <elf.h>
#include <string.h>
#include <sys/auxv.h>

static const void *at(const Elf64_Ehdr *image, size_t offset)
{
    return (const char *)image + offset;
}

void *vdso_function(const char *name)
{
    const Elf64_Ehdr *image = (const void *)getauxval(AT_SYSINFO_EHDR);
    const Elf64_Shdr *sections, *symbols = NULL;

    if (!image || !image->e_shnum)
        return NULL;
    sections = at(image, image->e_shoff);
    for (int i = 0; i < image->e_shnum; i++)
        if (sections[i].sh_type == SHT_DYNSYM)
            symbols = &sections[i];
    if (!symbols)
        return NULL;
    for (size_t i = 0; i < symbols->sh_size / sizeof(Elf64_Sym); i++) {
        const Elf64_Sym *symbol = (const Elf64_Sym *)at(image, symbols->sh_offset) + i;

        if (!strcmp(at(image, sections[symbols->sh_link].sh_offset + symbol->st_name), name))
            return (void *)at(image, symbol->st_value);
    }
    return NULL;
}
