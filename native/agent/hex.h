/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hexadecimal digits, which archives and jobs have in common. */
#ifndef KDELTA_HEX_H
#define KDELTA_HEX_H

/* The digit's value, or -1. */
static inline int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

#endif
