/* SPDX-License-Identifier: 0BSD */
/* How a program ends when something fails: why goes to the host, as its run's failure, and to standard error. */
#ifndef KDELTA_FAILURE_H
#define KDELTA_FAILURE_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kdelta.h"

/* `doing` is what the program was at. Longer texts are cut. */
__attribute__((noreturn, format(printf, 3, 0))) static inline void kdelta_fail(const char *program, const char *doing,
                                                                               const char *format, va_list arguments)
{
    char text[(8 << 10) + 512] = "failure\n", *why = text + strlen(text);
    size_t left = sizeof text - strlen(text);
    int size = snprintf(why, left, "%.256s: ", doing);

    vsnprintf(why + size, left - (size_t)size, format, arguments);
    dprintf(STDERR_FILENO, "%s: %s\n", program, why);
    kdelta_message(text, strlen(text));
    _exit(1);
}

#endif
