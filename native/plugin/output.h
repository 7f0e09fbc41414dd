/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file that a run leaves: chunks of (tag, length, payload), little-endian; docs/formats.md describes them. */
#ifndef KDELTA_OUTPUT_H
#define KDELTA_OUTPUT_H

#include "count.h"

bool output_open(const char *path, const struct arch *arch);
void output_message(const struct bytes *message);
void output_region(const struct region *region);
void output_seen(void);
void output_warning(const char *text, uint64_t count);
/* The last chunk; without it the file is known to be cut short. */
void output_end(void);

#endif
