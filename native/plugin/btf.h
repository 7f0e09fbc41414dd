/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The guest kernel's own description of its types: Documentation/bpf/btf.rst. */
#ifndef KDELTA_BTF_H
#define KDELTA_BTF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Takes the section's content, which stays the caller's and as it is. False for what is none. */
bool btf_load(const uint8_t *data, size_t size);
/* Where a struct has a field, in bytes, that may be one of an unnamed member's. False where it has none. */
bool btf_offset(const char *structure, const char *field, uint32_t *bytes);

#endif
