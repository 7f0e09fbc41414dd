/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of find_files share. */
#ifndef KDELTA_FIND_FILES_H
#define KDELTA_FIND_FILES_H

#include <stddef.h>
#include <stdint.h>

/* What of a file is needed. The letters are those that the host is asked by. */
enum need {
    ITSELF = 'n',  /* the name, and where it leads if it is a symbolic link */
    TARGET = 's',  /* and the file that it leads to: type, size and times */
    CONTENT = 'c', /* and its content */
    PROGRAM = 'x', /* and what the kernel starts it by */
    LISTING = 'l', /* of a folder: the names in it */
    OPENED = 'o',  /* in the table of calls: one of these, by the call's flags */
};

/* Which arguments name a file: the folder's descriptor, the name, flags. A call with two names has two rows. */
struct call {
    int number;
    signed char folder, name, flags;
    enum need need;
};

extern const struct call calls[];
extern const size_t n_calls;

enum need need_of(const struct call *call, const uint64_t *arguments);
int folder_of(const struct call *call, const uint64_t *arguments);

/* names.c: has the host bring that file, unless it did already. */
void name_needed(const char *path, enum need need);

/* _Noreturn: tells the host why files cannot be found, and ends. */
_Noreturn void give_up(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
