/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The list of listeners. */
#include "listener.h"

const struct listener *listeners[MOST_LISTENERS + 1];

void listener_add(const struct listener *listener)
{
    const struct listener **last = listeners;

    while (*last)
        last++;
    *last = listener;
}
