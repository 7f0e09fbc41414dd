/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Accesses to data as items of a trace: lines by virtual and physical address, loads and stores apart. */
#ifndef KDELTA_DATA_H
#define KDELTA_DATA_H

#include "arch.h"
#include "memory.h"
#include "qemu_api.h"

#define DATA_ITEM (UINT32_C(1) << 31)

extern bool data_wanted;
extern unsigned data_line_bytes; /* of a line: a power of 2, as no cache of the CPUs in question has a shorter one */

void data_want(const struct arch *arch);
/* A load or store was made. */
void data_access(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *unused);
/* What was left out so far, since it might repeat, goes into the trace; and all is forgotten. */
void data_flush(void);
/* What the unit that waited has accessed comes now. */
void data_release(void);
void data_forget(void);

uint32_t data_count(void);
void data_rows(struct bytes *rows);
/* The physical address of the kernel's image is its virtual one less this; false when it is not known. */
bool data_image_offset(uint64_t *offset);
bool data_is_in_image(uint64_t vaddr);

#endif
