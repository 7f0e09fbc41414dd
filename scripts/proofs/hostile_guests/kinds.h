/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a hostile program may do, by its name. */
#ifndef KINDS_H
#define KINDS_H

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kdelta.h"

#define ESCAPES "\x1b]0;HOSTILE\a\x1b[2J\x1b[8m\rHOSTILE\b\x7f\x9b" "8m\xc2\x9b" "8m\xe2\x80\xae\xe2\x80\xa8\xff\xfe\x0e"

struct kind {
    const char *name;
    void (*act)(void);
};

extern const struct kind resource_kinds[], message_kinds[], mark_kinds[], system_kinds[]; /* each ends with NULL */
extern const char *self; /* the path of this program */

static inline void region(const char *name)
{
    kdelta_begin(name);
    for (int i = 0; i < 100; i++) {
        getppid();
        kdelta_iter();
    }
    kdelta_end();
}

static inline void say(const char *text)
{
    kdelta_message(text, strlen(text));
}

static inline void put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);

    if (fd >= 0) {
        if (write(fd, text, strlen(text)) < 0)
            perror(path);
        close(fd);
    }
}

static inline void forever(void)
{
    for (;;)
        __asm__ volatile("");
}

#endif
