/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A compile of a part of a kernel in the guest: what the parts offer each other. */
#ifndef KBUILD_H
#define KBUILD_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_OBJECTS 64
#define MAX_WORDS 32

struct object {
    const char *path;
    uint32_t crc; /* of what the same compiler made of it on the host */
};

/* What kdelta laid besides the tree: the words for make, and the objects. */
struct tree {
    const char *place;
    const char *words[MAX_WORDS];
    struct object objects[MAX_OBJECTS];
    size_t n_words, n_objects;
};

/* tree.c */
void tree_load(struct tree *tree, const char *place);
void tree_remove_objects(const struct tree *tree);
void tree_check_objects(const struct tree *tree, size_t wanted); /* that the first ones are there, and no others */

/* telling.c: each ends the process where it cannot do what it says */
void tell_operation(const char *name);
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void fail_with_log(const char *what, const char *log);
long must(long result, const char *what);

#endif
