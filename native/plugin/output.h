/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file that a run leaves: chunks of (tag, length, payload), little-endian; docs/formats.md describes them. */
#ifndef KDELTA_OUTPUT_H
#define KDELTA_OUTPUT_H

#include "segment.h"

bool output_open(const char *path, const struct arch *arch);
void output_message(const struct bytes *message);
/* The next kind of special instructions has this name. */
void output_kind(const char *name);
/* False when it was dropped, since the guest began too many. */
bool output_region(const struct region *region);
/* Definitions of blocks that have none yet, and the chunk of them. */
void output_define(struct bytes *definitions, struct block *b);
void output_blocks(const struct bytes *definitions);
void output_seen(void);
/* Two tasks were in regions at once, or the names of two were sent at once (then the second one's is what came): no count is right. */
void output_marks_at_once(const char *active, const char *begun, size_t length);
void output_warning(const char *text, uint64_t count);
/* The last chunk; without it the file is known to be cut short. */
void output_end(void);

/* A chunk from several parts. */
struct part {
    const void *data;
    uint64_t size;
};
void output_parts(const char tag[4], const struct part *parts, size_t n);
/* So much may be written of traces, in all. */
void output_limit_traces(uint64_t bytes);
/* Whether as much may still be written of them; if so, it is spoken for. */
bool output_has_room(uint64_t size);

#endif
