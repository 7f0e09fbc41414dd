/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads a cpio archive ("newc") from a stream and unpacks it. */
#ifndef KDELTA_CPIO_H
#define KDELTA_CPIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct stream {
    const uint8_t *data; /* what is at hand */
    size_t size;
    bool (*fill)(struct stream *stream); /* brings more, at least a byte, when nothing is left; false at the end */
    void *source;
};

#define CPIO_PATH_MAX 1024

/* The path below the root that an archive's name means: no leading slash, no empty or "." parts. False when it has "..",
 * is too long, or when `clean` (CPIO_PATH_MAX bytes) would be longer than that. The root itself is "". */
bool cpio_clean_path(const char *name, char *clean);

/* Whether these are the times of a file that was unpacked without its content. */
bool cpio_is_hole(const struct timespec *accessed, const struct timespec *modified);

/* Unpacks below the folder that is open as `root`: files, folders and symbolic links, nothing else.
 * Returns NULL, or what was wrong (until the next call). */
const char *cpio_unpack(struct stream *stream, int root);

#endif
